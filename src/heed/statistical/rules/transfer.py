"""Transfer: words with classes and features, rearranged and inflected by the rules of a file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from heed.statistical.rules.rule_file import OTHER, Rule, RuleFile

Candidates = Sequence[tuple[str, float]]
"""Translations of a word with their log-probabilities, the likeliest first."""


@dataclass
class Node:
    """A word of the source, or several that a rule made one element of."""

    class_: str
    place: int = -1
    """Its place in the source; -1 for several words."""
    candidates: Candidates = ()
    features: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    """The rules that it was part of."""
    is_dropped: bool = False

    def leaves(self) -> Iterator[Node]:
        """Its words in the order of the target."""
        if self.place >= 0:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass
class Written:
    """A word of the target."""

    place: int
    """The place of its source word."""
    text: str
    """Empty for a word without translation."""
    log_prob: float
    rules: tuple[str, ...]


def transferred(
    words: Sequence[str], candidates: Sequence[Candidates], features_of: Callable[[str], Mapping[str, str]],
    rules: RuleFile,
) -> list[Written]:  # fmt: skip
    """The target of a sentence.

    `words`: the source words in lower case; `features_of`: what is known about a word of the target.
    """
    nodes = [
        _node(place, word, options, features_of, rules)
        for place, (word, options) in enumerate(zip(words, candidates, strict=True))
    ]
    for rule in rules.rules:
        nodes = _applied(rule, nodes)
    leaves = [leaf for node in nodes for leaf in node.leaves()]
    return _contracted([_written(leaf, words[leaf.place], rules) for leaf in leaves], rules.contractions)


def _node(
    place: int, word: str, candidates: Candidates, features_of: Callable[[str], Mapping[str, str]], rules: RuleFile
) -> Node:
    best = candidates[0][0] if candidates else word
    known, own = features_of(best), rules.features.get(word, {})
    if word in rules.class_of:
        return Node(rules.class_of[word], place, candidates, {**known, **own})
    for test in rules.tests:
        if fnmatchcase(word, test.source) and fnmatchcase(best, test.target):
            return Node(test.class_, place, candidates, {**known, **test.features, **own})
    return Node(OTHER, place, candidates, {**known, **own})


def _applied(rule: Rule, nodes: list[Node]) -> list[Node]:
    """The nodes after a rule was applied wherever it matches, from the left, without overlaps."""
    text = "".join(f"<{node.class_}>" for node in nodes)
    starts: dict[int, int] = {}
    at = 0
    for number, node in enumerate(nodes):
        starts[at] = number
        at += len(node.class_) + 2
    starts[at] = len(nodes)
    out: list[Node] = []
    done = 0
    for match in rule.pattern.finditer(text):
        begin, end = starts[match.start()], starts[match.end()]
        elements = [nodes[starts[match.start(k)] : starts[match.end(k)]] for k in range(1, len(rule.match) + 1)]
        out += [*nodes[done:begin], *_rewritten(rule, elements)]
        done = end
    return [*out, *nodes[done:]]


def _rewritten(rule: Rule, elements: list[list[Node]]) -> list[Node]:
    for setting in rule.set:
        _set(setting, elements)
    order = rule.order or range(1, len(elements) + 1)
    kept = [node for number in order for node in elements[number - 1]]
    dropped = [node for number, element in enumerate(elements, start=1) if number not in order for node in element]
    for node in [*kept, *dropped]:
        for leaf in node.leaves():
            leaf.rules.append(rule.name)
            leaf.is_dropped |= node in dropped
    every = [*dropped, *kept]
    if not rule.as_:
        return every
    head = elements[rule.head - 1] if rule.head else kept
    features = dict(head[-1].features) if head else {}
    return [Node(rule.as_, features=features, children=every)]


def _set(setting: Mapping[str, str | tuple[int, ...]], elements: list[list[Node]]) -> None:
    on = setting.get("on", range(1, len(elements) + 1))
    for name, value in setting.items():
        if not isinstance(value, str):  # the elements
            continue
        given = _value(name, value, elements)
        if given is not None:
            for number in map(int, on):
                for node in elements[number - 1]:
                    if name == "class":
                        node.class_ = given
                        continue
                    node.features[name] = given
                    for leaf in node.leaves():
                        leaf.features[name] = given


def _value(name: str, value: str, elements: list[list[Node]]) -> str | None:
    """A value, or that of the feature of another element: `@3`, `@3.number`; None if it has none."""
    if not value.startswith("@"):
        return value
    number, _, other = value[1:].partition(".")
    element = elements[int(number) - 1]
    return element[-1].features.get(other or name) if element else None


def _written(leaf: Node, word: str, rules: RuleFile) -> Written:
    names = tuple(leaf.rules)
    if leaf.is_dropped:
        return Written(leaf.place, "", 0.0, names)
    features = {**rules.defaults, **leaf.features}
    for forms in rules.forms:
        if forms.class_ != leaf.class_:
            continue
        key = " ".join(features.get(name, "") for name in forms.by)
        if key in forms.words:
            return Written(leaf.place, forms.words[key], 0.0, names)
        if key in forms.endings:
            fitting = [each for each in leaf.candidates if each[0].endswith(forms.endings[key])]
            if fitting:
                return Written(leaf.place, *fitting[0], names)
    if word in rules.translations:
        return Written(leaf.place, rules.translations[word], 0.0, names)
    text, log_prob = leaf.candidates[0] if leaf.candidates else (word, 0.0)
    return Written(leaf.place, text, log_prob, names)


def _contracted(words: list[Written], contractions: Mapping[str, str]) -> list[Written]:
    """Two adjacent words as one, which belongs to the first."""
    written = [word for word in words if word.text]
    for first, second in itertools.pairwise(written):
        if (both := contractions.get(f"{first.text} {second.text}")) is not None:
            first.text, second.text = both, ""
    return words
