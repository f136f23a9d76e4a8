"""``mslint rule`` and ``mslint codemod``."""


def test_rules_are_listed_and_explained_by_code_and_name(cli) -> None:
    listed = cli("rule").out
    assert "MS101  warning  whole-network-grad:" in listed
    assert "MS901  warning  old-call: a call of a function that is no more [new-call]\n" in listed
    explained = (
        "MS901 old-call\nseverity: warning; rewritten by the codemod new-call\n\n"
        "Calls of functions that are no more.\n\nUse instead: `new_call`.\n"
    )
    assert cli("rule", "MS901") == cli("rule", "old-call") == (0, explained, "")
    assert "no codemod rewrites it" in cli("rule", "quiet").out
    assert "Example\n        self.grad = ops.GradOperation(" in cli("rule", "MS101").out


def test_codemods_are_listed_and_explained(cli) -> None:
    listed = cli("codemod").out
    assert "functional-grad: " in listed
    assert "new-call: old_call becomes new_call [MS901]\n" in listed
    assert cli("codemod", "new-call").out == (
        "new-call\nrewrites: MS901\napplicability: Safe, but for odd_call.\n\nRenames.\n"
    )


def test_unknown_names_get_the_nearest(cli) -> None:
    said = "error: unknown rule 'whole-net-grad'; did you mean whole-network-grad? (`mslint rule` lists them)\n"
    assert cli("rule", "whole-net-grad").err == said
    said = "error: unknown codemod 'newcall'; did you mean new-call? (`mslint codemod` lists them)\n"
    assert cli("codemod", "newcall") == (2, "", said)


def test_names_far_from_all_get_no_nearest(cli) -> None:
    assert cli("rule", "FOO").err == "error: unknown rule 'FOO' (`mslint rule` lists them)\n"
    assert cli("codemod", "boo").err == "error: unknown codemod 'boo' (`mslint codemod` lists them)\n"
