"""Whether a script has the function that is to be called; found by reading, nothing is imported."""

from __future__ import annotations

import ast
import symtable


def may_define(text: str, name: str) -> bool:
    """Tell whether running the module ``text`` may give it a global ``name``: only a star import keeps this open.

    Raises SyntaxError if ``text`` cannot be parsed.
    """
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(ast.parse(text))):
        return True
    return name in _bound(symtable.symtable(text, "<script>", "exec"), outermost=True)


def _bound(table: symtable.SymbolTable, outermost: bool) -> set[str]:
    """The globals that a scope and those in it bind."""
    own = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if (symbol.is_assigned() or symbol.is_imported()) and (outermost or symbol.is_declared_global())
    }
    return own.union(*(_bound(inner, outermost=False) for inner in table.get_children()))
