"""Dates with a clock time: operators move on by some span, or to a certain day or time, or mirror a part."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable

from brb_jax.generator.domain import Domain, Operator
from brb_jax.generator.draws import Draws

Moment = datetime.datetime
"""To the minute."""

_TEXT = re.compile(r"([1-9][0-9]{3})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2})")
# Years, months, days, hours, minutes. No day after the 28th is drawn, so that each part can change by itself.
_DRAWN = (range(1900, 2100), range(1, 13), range(1, 29), range(24), range(60))

# Years of four figures are taken as a circle: every operator is defined on every moment.
_FIRST_YEAR, _LAST_YEAR = 1000, 9999
_START = datetime.datetime(_FIRST_YEAR, 1, 1)
_MINUTE = datetime.timedelta(minutes=1)
_MINUTES = (datetime.datetime(_LAST_YEAR, 12, 31, 23, 59) - _START) // _MINUTE + 1
_DAY = 24 * 60


def _sample(draws: Draws) -> Moment:
    year, month, day, hour, minute = (draws.choice(drawn) for drawn in _DRAWN)
    return Moment(year, month, day, hour, minute)


def _render(moment: Moment) -> str:
    return moment.isoformat(" ", "minutes")


def _parse(text: str) -> Moment:
    refusal = f"{text!r} is not a date and time such as 1987-06-05 14:30"
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(refusal)
    try:
        year, month, day, hour, minute = map(int, match.groups())
        return Moment(year, month, day, hour, minute)
    except ValueError as error:  # There is no such day or time.
        raise ValueError(refusal) from error


def _parts(moment: Moment) -> tuple[str, ...]:
    return tuple(re.split("[- :]", _render(moment)))


def _edit(moment: Moment, place: int, draws: Draws) -> Moment:
    numbers = list(moment.timetuple()[: len(_DRAWN)])
    numbers[place] = draws.choice([number for number in _DRAWN[place] if number != numbers[place]])
    year, month, day, hour, minute = numbers
    return Moment(year, month, day, hour, minute)


def _later(minutes: int) -> Callable[[Moment], Moment]:
    return lambda m: _START + ((m - _START) // _MINUTE + minutes) % _MINUTES * _MINUTE


def _months_later(months: int) -> Callable[[Moment], Moment]:
    def apply(moment: Moment) -> Moment:
        years, month = divmod(moment.month - 1 + months, 12)
        year = _FIRST_YEAR + (moment.year + years - _FIRST_YEAR) % (_LAST_YEAR - _FIRST_YEAR + 1)
        day = min(moment.day, _days(year, month + 1))
        return moment.replace(year=year, month=month + 1, day=day)

    return apply


def _days(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def _next_monday(moment: Moment) -> Moment:
    return _later((7 - moment.weekday()) * _DAY)(moment)


def _mirror_day(moment: Moment) -> Moment:
    return moment.replace(day=_days(moment.year, moment.month) + 1 - moment.day)


def _mirror_time(moment: Moment) -> Moment:
    return moment.replace(hour=23 - moment.hour, minute=59 - moment.minute)


_OPERATORS = (
    Operator("quarter_hour_later", "move on by fifteen minutes", _later(15)),
    Operator("hour_later", "move on by one hour", _later(60)),
    Operator("half_day_later", "move on by twelve hours", _later(12 * 60)),
    Operator("day_later", "move on by one day", _later(_DAY)),
    Operator("day_earlier", "go back by one day", _later(-_DAY)),
    Operator("week_later", "move on by seven days", _later(7 * _DAY)),
    Operator("hundred_days_later", "move on by a hundred days", _later(100 * _DAY)),
    Operator("month_later", "move on by one month, to its last day if it lacks the day", _months_later(1)),
    Operator("half_year_later", "move on by six months, to the month's last day if it lacks the day", _months_later(6)),
    Operator(
        "ten_years_later", "move on by ten years, and from 29 February to the 28th if need be", _months_later(120)
    ),
    Operator("first_of_month", "go to the first day of the month, at the same time", lambda m: m.replace(day=1)),
    Operator(
        "last_of_month",
        "go to the last day of the month, at the same time",
        lambda m: m.replace(day=_days(m.year, m.month)),
    ),
    Operator("next_monday", "move on to the next Monday, from a Monday by a week, at the same time", _next_monday),
    Operator("new_year", "go to 1 January of the year, at the same time", lambda m: m.replace(month=1, day=1)),
    Operator("full_hour", "set the minutes to zero", lambda m: m.replace(minute=0)),
    Operator("noon", "set the time to 12:00", lambda m: m.replace(hour=12, minute=0)),
    Operator(
        "mirror_day",
        "turn the first day of a month into its last, the second into the last but one and so on",
        _mirror_day,
    ),
    Operator("mirror_time", "take the time of day from 23:59", _mirror_time),
)

DATES = Domain(
    name="dates",
    operators=_OPERATORS,
    sample=_sample,
    render=_render,
    parse=_parse,
    parts=_parts,
    edit=_edit,
)
