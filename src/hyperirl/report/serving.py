"""The report of a run while it runs, for a browser on this machine."""

import http.server
from html import escape
from http import HTTPStatus
from pathlib import Path

from hyperirl.report.page import render
from hyperirl.report.style import STYLE, head
from hyperirl.runs import RunFolder

_ADDRESS = "127.0.0.1"  # Nobody else can reach it.


class ReportServer(http.server.ThreadingHTTPServer):
    """Draws the report anew for every visit, and has nothing else to offer.

    ```
    with ReportServer("runs/first", port=8017) as server:
        server.serve_forever()
    ```
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, folder: str | Path, port: int = 8017, *, every: int = 5):
        """Begins to listen; the folder must be that of a run.

        Args:
            folder: Of the run.
            port: Where to listen; 0 takes one that is free.
            every: Seconds until the browser asks again.
        """
        self.folder = RunFolder.open(folder).path
        self.every = every
        if not 0 <= port < 2**16:
            raise ValueError(f"A port is from 0 to 65535, got {port}.")
        if every < 1:
            raise ValueError(f"The report is drawn once a second at most, got {every}.")
        try:
            super().__init__((_ADDRESS, port), _Visit)
        except OSError as error:
            raise ValueError(
                f"Cannot listen on port {port} ({error.strerror}); choose another one, "
                "or 0 for any that is free."
            ) from error

    @property
    def url(self) -> str:
        """What to open in a browser."""
        return f"http://{_ADDRESS}:{self.server_port}/"

    def page(self) -> tuple[HTTPStatus, str]:
        """The report; a sentence while the folder cannot be read."""
        try:
            return HTTPStatus.OK, render([self.folder])
        except (ValueError, OSError) as error:
            words = f"<title>{escape(self.folder.name)}</title></head><body><main>"
            words += f'<p class="lead">{escape(str(error))}</p></main></body></html>\n'
            return HTTPStatus.INTERNAL_SERVER_ERROR, head(STYLE) + words


class _Visit(http.server.BaseHTTPRequestHandler):
    """One request. Only `GET /` is known: other methods are refused by the base."""

    server: ReportServer  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version, sys_version = "hyperirl", ""
    timeout = 10

    def do_GET(self) -> None:
        """Sends the page, to those who asked for this machine by its name."""
        # A site elsewhere can have its own name point here, and then read the answer.
        names = {
            f"{name}:{self.server.server_port}" for name in (_ADDRESS, "localhost")
        }
        if self.headers.get("Host", "").lower() not in names:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "Ask for 127.0.0.1.\n", "plain")
        elif self.path != "/":
            self._send(HTTPStatus.NOT_FOUND, "There is only /.\n", "plain")
        else:
            self._send(*self.server.page(), "html")

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        content = text.encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": f"text/{kind}; charset=utf-8",
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "frame-ancestors 'none'",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
        }.items():
            self.send_header(name, value)
        if kind == "html":
            self.send_header("Refresh", str(self.server.every))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: there is a visit every few seconds."""
