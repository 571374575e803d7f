"""Formulas as MathML, which browsers draw by themselves: no network, no script."""

from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict:
    """Registers the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer, node) -> None:
    writer.body.append(latex2mathml.tex2mathml(node.astext(), as_block=False))
    node.children.clear()


def _block(writer, node) -> None:
    formula = latex2mathml.tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div style="overflow-x:auto;margin:1em 0">{formula}</div>')
    node.children.clear()
