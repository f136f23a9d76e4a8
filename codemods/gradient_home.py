"""Where a gradient function is built: once, beside what it needs, rather than at each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from codemods.gradient_site import Site
from codemods.in_constructor import assigned_in_init, expression_in_init, may_be_none
from codemods.statements import comments_above, in_lines, indentation, inner_comments, insert_after, newline, remove
from mslint.findings import Edit, Position
from mslint.semantics.cells import CellClass, self_name
from mslint.semantics.gradients import GradientOperator, normal, sole_value, statement_of
from mslint.semantics.module import Module, find

_COPIES = ("copy.deepcopy", "pickle.dump", "pickle.dumps")


@dataclass(frozen=True)
class Home:
    """A place for ``network`` and ``weights`` to be made a gradient function of, and what calls it there.

    ``replaced`` is the statement that built the old operator or gradient function; the new one goes below ``anchor``, or
    takes the old one's place if there is no anchor. Where a class has no ``__init__`` of its own, one that hands everything
    on to its base is written above the method ``below``, with ``this`` for ``self``.
    """

    callee: str
    assigned: str
    network: str
    weights: str
    indent: str
    replaced: cst.SimpleStatementLine | None
    anchor: cst.CSTNode | None = None
    below: cst.FunctionDef | None = None
    this: str = "self"

    def edits(self, module: Module, lines: Sequence[str]) -> list[Edit]:
        """Return the edits that put the statements ``lines`` here."""
        block = list(lines)
        spaced = block[0].lstrip().startswith("def ")
        if self.below is not None:
            return [self._constructor(module, self.below, [*([""] if spaced else []), *block])]
        if self.replaced is None or self.anchor is not None:
            assert self.anchor is not None
            above = [self.indent + text for text in comments_above(module, self.replaced)] if self.replaced else []
            text = in_lines(module, [*([""] if spaced else []), *above, *block])
            return [
                insert_after(module, self.anchor, text),
                *([remove(module, self.replaced)] if self.replaced else []),
            ]
        above = [
            self.indent + text
            for text in (*comments_above(module, self.replaced), *inner_comments(module, self.replaced))
        ]
        first = module.start(self.replaced).row - len(comments_above(module, self.replaced))
        before = module.lines[first - 2].strip() if first > 1 else ""
        gap = [""] if spaced and before and not before.endswith(":") else []
        content = newline(module).join([*gap, *above, *block])
        return [Edit(Position(first, 1), module.end(self.replaced.body[0]), content)]

    def _constructor(self, module: Module, method: cst.FunctionDef, block: list[str]) -> Edit:
        """Return the edit that writes an ``__init__`` with the statements ``block`` above ``method``."""
        first = min((method, *method.decorators), key=module.start)
        outer = indentation(module, first)
        handed_on = "*args, **kwargs"
        place = Position(module.start(first).row - len(comments_above(module, first)), 1)
        lines = [
            f"{outer}def __init__({self.this}, {handed_on}):",
            f"{self.indent}super().__init__({handed_on})",
            *block,
            "",
        ]
        return Edit(place, place, in_lines(module, lines))


def find_home(module: Module, operator: GradientOperator, sites: Sequence[Site], name: str | None) -> Home | None:
    """Return where the one gradient function of ``sites``, all alike, can be built, or None if it must be built at each.

    ``name`` is the attribute that is to hold it; None keeps the operator's own.
    """
    first = sites[0].application
    if weights_may_change(module, sites[0]):
        return None
    if first.kept_in is not None and all(site.application is first for site in sites):
        kept = _where_kept(module, first.kept_in, sites[0], name)
        if kept is not None:
            return kept
    owner = operator.owner or sites[0].owner
    if owner is not None and all(site.owner is not None for site in sites):
        return _in_init(module, operator, owner, sites, name)
    if operator.variable and operator.holder is not None:
        return _at_variable(module, operator, sites[0])
    return None


def weights_may_change(module: Module, site: Site) -> bool:
    """Tell whether the network is asked for its trainable parameters at each step, and they may be others each time.

    GradOperation does so itself where no weights are given (measured, MindSpore 2.10.0).
    """
    weights = site.application.weights
    if weights is not None:
        value = sole_value(module, weights)
        asked = any(name.value == "trainable_params" for name in find(value, cst.Name))
        if not asked or site.function is None or site.function not in module.ancestors(value):
            return False
    program = module.program
    files = program.neighbourhood(module.source.path.absolute())
    return any("requires_grad" in program.facts(file).touched for file in files)


def alike(module: Module, one: Site, other: Site) -> bool:
    """Tell whether two sites differentiate the same network by the same weights."""
    first, second = one.application, other.application
    return _same(module, first.network, second.network) and _same(module, first.weights, second.weights)


def _same(module: Module, one: cst.BaseExpression | None, other: cst.BaseExpression | None) -> bool:
    if one is None or other is None:
        return one is other
    return normal(module, sole_value(module, one)) == normal(module, sole_value(module, other))


def _where_kept(module: Module, assign: cst.CSTNode, site: Site, name: str | None) -> Home | None:
    line = statement_of(module, assign)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    if not isinstance(assign, (cst.Assign, cst.AnnAssign)):
        return None
    target = assign.targets[0].target if isinstance(assign, cst.Assign) else assign.target
    if isinstance(target, cst.Name) and site.owner is not None and module.scope(assign) is site.function:
        # A local of the step function: better built in __init__.
        return None
    callee = module.code(target)
    if isinstance(target, cst.Attribute) and name:
        callee = f"{module.code(target.value)}.{name}"
    assert site.application.network is not None
    network = module.code(site.application.network)
    weights = module.code(site.application.weights) if site.application.weights else f"{network}.trainable_params()"
    return Home(callee, callee, network, weights, indentation(module, line), line)


def _at_variable(module: Module, operator: GradientOperator, site: Site) -> Home | None:
    assign = operator.holder
    line = statement_of(module, assign) if assign else None
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1 or site.application.network is None:
        return None
    texts: list[str] = []
    for expression in (site.application.network, site.application.weights):
        if expression is None:
            texts.append(f"{texts[0]}.trainable_params()")
            continue
        if isinstance(expression, cst.Lambda) or not _bound_before(module, expression, line):
            return None
        texts.append(module.code(expression))
    assert operator.variable is not None
    return Home(operator.variable, operator.variable, texts[0], texts[1], indentation(module, line), line)


def _bound_before(module: Module, expression: cst.CSTNode, line: cst.SimpleStatementLine) -> bool:
    """Tell whether every name in ``expression`` means at ``line`` what it means where it stands."""
    for name in find(expression, cst.Name):
        parent = module.parents[name]
        if isinstance(parent, cst.Attribute) and parent.attr is name:
            continue
        here, there = module.lookup(name.value, name), module.lookup(name.value, line.body[0])
        if [b.node for b in here] != [b.node for b in there]:
            return False
        same_scope = here and module.scope(here[0].node) is module.scope(line)
        if same_scope and (len(here) != 1 or module.start(here[0].node) > module.start(line)):
            return False
    return True


def _in_init(
    module: Module, operator: GradientOperator, owner: CellClass, sites: Sequence[Site], name: str | None
) -> Home | None:
    built = operator.holder is not None and isinstance(module.scope(operator.holder), cst.FunctionDef)
    if operator.construction is not None and not built and _copied(module):
        return None
    init = owner.methods.get("__init__")
    if init is not None and not isinstance(init.body, cst.IndentedBlock):
        return None
    site = sites[0]
    assert site.application.network is not None
    network = expression_in_init(module, owner, init, site, site.application.network)
    weights = (
        expression_in_init(module, owner, init, site, site.application.weights)
        if site.application.weights is not None
        else (f"{network[0]}.trainable_params()", network[1])
        if network
        else None
    )
    if network is None or weights is None or any(may_be_none(module, owner, init, needed) for needed in weights[1]):
        return None
    attribute = name or operator.attribute or "grad"
    if init is None:
        return None if built else _in_new_init(module, owner, site, attribute, (network[0], weights[0]))
    body: list[cst.CSTNode] = list(init.body.body)
    places = [
        _top(module, init, place)
        for needed in network[1] | weights[1]
        for place in assigned_in_init(module, owner, init, needed) or ()
    ]
    if None in places:
        return None
    rows = [body.index(place) for place in places if place is not None]
    held = f"{self_name(init)}.{attribute}"
    line = statement_of(module, operator.holder) if operator.holder is not None else None
    if operator.attribute is not None and line is not None and built:
        top = _top(module, init, line)
        if top is None or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            return None
        if body.index(top) >= max(rows, default=0):
            return Home(held, held, network[0], weights[0], indentation(module, line), line)
        if top is not line:
            return None
    else:
        line = None
    anchor = body[max(rows, default=len(body) - 1)]
    return Home(held, held, network[0], weights[0], indentation(module, body[0]), line, anchor)


def _in_new_init(
    module: Module, owner: CellClass, site: Site, attribute: str, differentiated: tuple[str, str]
) -> Home | None:
    """Return a home in an ``__init__`` that the class does not have yet and that only hands on to its base."""
    block = owner.node.body
    first = next((item for item in block.body if isinstance(item, cst.FunctionDef)), None)
    defined = any(name.value == "__init__" for name in find(block, cst.Name))
    if first is None or site.function is None or defined or not isinstance(block, cst.IndentedBlock):
        # An `__init__` under a condition would hide the one written here.
        return None
    # Not of the first method, which may be static or a __new__.
    this = self_name(site.function)
    held = f"{this}.{attribute}"
    indent = indentation(module, min((first, *first.decorators), key=module.start))
    outer = indentation(module, owner.node)
    return Home(held, held, *differentiated, indent + indent[len(outer) :], None, below=first, this=this)


def _copied(module: Module) -> bool:
    """Tell whether the program copies objects: a gradient function that a copy holds is still that of the first object.

    A Cell that holds a GradOperation cannot be copied or pickled (MindSpore 2.10.0: TypeError), so this matters only for
    an operator that is kept elsewhere.
    """
    program = module.program
    files = program.neighbourhood(module.source.path.absolute())
    return any(program.dotted_in(file, use) in _COPIES for file in files for use in program.facts(file).uses)


def _top(module: Module, init: cst.FunctionDef, node: cst.CSTNode) -> cst.CSTNode | None:
    """Return the statement directly in the body of ``init`` that holds ``node``."""
    for item in (node, *module.ancestors(node)):
        if module.parents.get(item) is init.body:
            return item
    return None
