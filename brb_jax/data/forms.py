"""Accepted form ─► canonical form of one case, without checking it: that is `canonical`'s business alone.

What cannot be told is left as `Unclear` where it would have stood, for the checker to report.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from typing import Any

from brb_jax.data import templates
from brb_jax.data.answer import Position
from brb_jax.data.case import CORRECT, TASKS
from brb_jax.data.fields import EXAMPLE_ALIASES, OPTION_ALIASES, Unclear, find, keys, unclear
from brb_jax.data.rules import Rules

_ARROW = "->"
_EXAMPLE = "{{ input }} -> {{ output }}\n"
_TYPES = {type_ for task in TASKS.values() for type_ in task.option_types}
_LABEL = re.compile("[A-Za-z]")


@dataclasses.dataclass(frozen=True)
class Form:
    """A case in canonical form.

    Attributes:
        fields: Those of `id`, `context`, `query`, `options` and `answer` that the case has, or `Unclear`.
        metadata: As it stands in the file.
        extra: What stands beside, by its key.
    """

    fields: dict[str, Any]
    metadata: Any
    extra: dict[str, Any]


def canonical_form(
    raw: dict[str, Any],
    stem: str,
    rules: Rules,
    given_id: int | str | None,
    aliases: Mapping[str, tuple[str, ...]],
) -> Form:
    """Finds the fields of a case under whatever keys and in whatever accepted form they are.

    Args:
        raw: An object of the file.
        stem: The file's name without its suffix.
        rules: What the user says about it.
        given_id: What the file's top level calls the case: its key there, or its place where no case has an id.
        aliases: The fields to look for: `CASE_ALIASES` or `QUESTION_ALIASES`.
    """
    key_of = find(raw, aliases, rules.field_map)
    fields = {name: key if isinstance(key, Unclear) else raw[key] for name, key in key_of.items() if key is not None}
    if given_id is not None:
        fields["id"] = _one_id(fields, given_id)
    types = fields.pop("types", None)
    used = {key for key in key_of.values() if isinstance(key, str)}
    if "context" not in fields and rules.field_map.get("context") == "":
        fields["context"] = ""
    if "options" in fields and not isinstance(fields["options"], Unclear):
        case_id = f"{stem}/{fields.get('id')}"
        fields["options"], answer, types_used = _options(fields, types, case_id, rules)
        if answer is not None:
            fields["answer"] = answer
        if not types_used and isinstance(key_of["types"], str):
            used.discard(key_of["types"])
    examples = fields.get("context")
    if isinstance(examples, list):
        fields["context"] = _context(examples, fields.get("query"), rules)
    if rules.prompt_template is None and "context" not in rules.field_map:
        _keep_question_apart(fields, key_of)
    if rules.prompt_template is not None:
        hidden = [key_of.get(name) for name in ("options", "types", "answer")]
        visible = {key: value for key, value in raw.items() if key not in hidden}
        _apply_prompt_template(rules.prompt_template, visible, key_of, examples, fields)
    extra = {key: value for key, value in raw.items() if key not in used and key != "metadata"}
    return Form(fields, raw.get("metadata", {}), extra)


def _keep_question_apart(fields: dict[str, Any], key_of: Mapping[str, Any]) -> None:
    """What is called a prompt may be all of it, question included; the model would read that twice."""
    key, (context, query) = key_of.get("context"), (fields.get(name) for name in ("context", "query"))
    if str(key).casefold() != "prompt" or not (isinstance(context, str) and isinstance(query, str) and query.strip()):
        return
    if context.rstrip().endswith(query.strip()):
        fields["context"] = unclear(
            f"its {key} ends with its {key_of['query']}, which would be read twice",
            f"--prompt_template='{{{{ {key} }}}}' reads {key} alone, --field_map=context={key} both",
        )


def _one_id(fields: Mapping[str, Any], given_id: int | str) -> Any:
    own = fields.get("id", given_id)
    if isinstance(own, Unclear) or str(own) == str(given_id):
        return own
    return unclear(f"its id is {own!r}, but it stands under the key {given_id!r}", "make them agree")


def _options(fields: Mapping[str, Any], types: Any, case_id: str, rules: Rules) -> tuple[Any, Any, bool]:
    """The options as canonical objects, the answer if the form settles it, and whether it needed `types`."""
    raw = fields["options"]
    if isinstance(raw, dict):
        if all(_LABEL.fullmatch(key) for key in raw):
            return _labelled(raw, types), None, True
        if _TYPES & raw.keys():
            return *_by_type(raw, fields.get("answer"), case_id), False
        problem = f"its options have the keys {keys(raw)}, which are neither labels (A, B, …) nor types"
        return unclear(problem, "key them by label, with a mapping of types beside, or by type"), None, False
    if isinstance(raw, list) and raw and all(isinstance(item, str) for item in raw):
        return _parallel(raw, types), None, True
    if isinstance(raw, list) and raw and all(isinstance(item, dict) for item in raw):
        return _objects(raw, types, rules)
    return raw, None, False


def _labelled(raw: dict[str, Any], types: Any) -> Any:
    """Label ─► text, with label ─► type beside."""
    if not raw:
        return []
    if isinstance(types, Unclear):
        return types
    if not isinstance(types, dict):
        return _without_types(types, "a mapping label to type")
    if types.keys() != raw.keys():
        return unclear(f"its options are labelled {keys(raw)}, its types {keys(types)}", "make them agree")
    return [{"label": label, "text": raw[label], "type": types[label]} for label in sorted(raw)]


def _parallel(raw: list[str], types: Any) -> Any:
    """Texts, with a list of types beside."""
    if isinstance(types, Unclear):
        return types
    if not isinstance(types, list):
        return _without_types(types, "a list of types")
    if len(types) != len(raw):
        return unclear(f"has {len(raw)} options, but {len(types)} types", "give every option one type")
    return [
        {"label": label, "text": text, "type": type_}
        for label, text, type_ in zip(_labels(len(raw)), raw, types, strict=True)
    ]


def _without_types(types: Any, form: str) -> Unclear:
    what = "has no types for its options" if types is None else f"its options need {form}, but its types are {types!r}"
    return unclear(what, f"add {form}, or name its key: --field_map=types=KEY")


def _objects(raw: list[dict[str, Any]], types: Any, rules: Rules) -> tuple[Any, Any, bool]:
    """Objects under any aliases. Labels may be left out of all, and types stand in a list beside."""
    found = [find(option, OPTION_ALIASES, rules.field_map, f"option {i}'s") for i, option in enumerate(raw)]
    problems = [p for keys_ in found for key in keys_.values() if isinstance(key, Unclear) for p in key.problems]
    if problems:
        return Unclear(tuple(dict.fromkeys(problems))), None, False
    labels = _labels(len(raw)) if all(keys_["label"] is None for keys_ in found) else None
    beside = all(keys_["type"] is None for keys_ in found) and isinstance(types, list) and len(types) == len(raw)
    options = []
    for i, (option, keys_) in enumerate(zip(raw, found, strict=True)):
        parts = {name: option[key] for name, key in keys_.items() if isinstance(key, str)}
        if labels:
            parts["label"] = labels[i]
        if beside:
            parts["type"] = types[i]
        # As it stands, where something is missing: the checker shows it.
        options.append(parts if len(parts) == len(OPTION_ALIASES) else option)
    return options, None, beside


def _by_type(raw: dict[str, Any], answer: Any, case_id: str) -> tuple[Any, Any]:
    """Type ─► text, in an order drawn for the case, and where the answer then is."""
    order = sorted(raw, key=lambda type_: hashlib.sha256(f"{case_id}\x1f{type_}".encode(errors="replace")).digest())
    options = [
        {"label": label, "text": raw[type_], "type": type_}
        for label, type_ in zip(_labels(len(raw)), order, strict=True)
    ]
    if isinstance(answer, Unclear):
        return options, answer
    if answer is None:
        # Without a `correct` that is the only thing to report.
        return options, Position(order.index(CORRECT)) if CORRECT in order else Unclear(())
    places = [i for i, option in enumerate(options) if option["text"] == answer]
    if not places:
        problem = f"the answer {answer!r} is no option's text, and options keyed by type have no labels or places"
        return options, unclear(problem, "give the exact text, or leave the answer out")
    return options, Position(places[0])


def _labels(count: int) -> list[str]:
    return [chr(ord("A") + i) for i in range(count)]


def _context(examples: list[Any], query: Any, rules: Rules) -> Any:
    """Examples as the lines of a context."""
    lines = []
    for i, example in enumerate(examples):
        line = _example(i, example, rules)
        if isinstance(line, Unclear):
            return line
        lines.append(line)
    objects = any(isinstance(example, dict) for example in examples)
    by_default = rules.example_template is None and rules.prompt_template is None
    if objects and by_default and isinstance(query, str) and not query.rstrip().endswith(_ARROW):
        return unclear(
            f"its examples are objects, by default written 'input {_ARROW} output', but its query {query[-40:]!r} does "
            f"not end in '{_ARROW}'",
            "say how to write both: --prompt_template=…; or, if the query is right as it is, --example_template=…",
        )
    return "".join(lines)


def _example(i: int, example: Any, rules: Rules) -> str | Unclear:
    remedy = "say how to write one: --example_template='{{ input }} -> {{ output }}' and the like"
    found: dict[str, Any] = {}
    if isinstance(example, dict):
        found = find(example, EXAMPLE_ALIASES, rules.field_map, f"example {i}'s")
    if rules.example_template is None:
        if isinstance(example, str):
            return example if example.endswith("\n") else example + "\n"
        if not found or None in found.values() or len(example) > len(found):
            seen = f"the keys {keys(example)}, not input and output" if isinstance(example, dict) else repr(example)
            return unclear(f"its example {i} has {seen}" if found else f"its example {i} is {seen}", remedy)
        for key in found.values():
            if isinstance(key, str) and (not isinstance(example[key], str | int) or isinstance(example[key], bool)):
                return unclear(f"its example {i} has the {key} {example[key]!r}, which is no text", remedy)
    for key in found.values():
        if isinstance(key, Unclear):
            return key
    variables = {**(example if isinstance(example, dict) else {}), "example": example}
    variables |= {name: example[key] for name, key in found.items() if key is not None}
    try:
        return templates.render(rules.example_template or _EXAMPLE, variables)
    except templates.TemplateError as error:
        return unclear(f"its example {i} does not fit --example_template: {error}", "correct the template")


def _apply_prompt_template(
    template: str, visible: dict[str, Any], key_of: Mapping[str, Any], examples: Any, fields: dict[str, Any]
) -> None:
    """Replaces context and query by what the template makes of them.

    The context is all lines before the first that depends on the query (of a single line, what comes before), so that
    cases share theirs as before. Where that is, rendering another query shows.
    """
    query = fields.get("query")
    if not isinstance(query, str) or isinstance(fields.get("context"), Unclear):
        return  # The checker says so.
    variables = visible | {key: fields[key] for key in ("id", "context", "query") if key in fields}
    if isinstance(examples, list):
        variables["examples"] = examples
    other = f"\0{query}"
    try:
        prompt = templates.render(template, variables)
        probe = templates.render(template, variables | dict.fromkeys(("query", str(key_of["query"])), other))
    except templates.TemplateError as error:
        fields["context"] = unclear(
            f"does not fit --prompt_template: {error}; the template sees {keys(variables)}", "correct the template"
        )
        return
    if prompt == probe:
        fields["context"] = unclear("--prompt_template leaves its query out", "put {{ query }} into the template")
        return
    difference = _first_difference(prompt, probe)
    start = prompt.rfind("\n", 0, difference) + 1 or difference
    fields["context"], fields["query"] = prompt[:start], prompt[start:]


def _first_difference(a: str, b: str) -> int:
    """The length of the longest common prefix, by bisection: slices are compared at memory speed."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
