"""TrueSkill for two players: a rating is a normal belief that each match narrows.

With two players the update has a closed form (Herbrich, Minka and Graepel, TrueSkill, 2006, section 3.2): a win cuts
the normal distribution of the difference at the draw margin, a tie cuts it on both sides. The order of the matches
shifts all ratings together, so ratings over shuffles are centred; in file order they equal those of the library
`trueskill`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtri

from distract import Draws, Matches, Ratings, RatingSystem

from .shuffles import CHUNK, Floats, Orders, check_parameter, combine_orders, count_common, read_results, replay

TAIL = 30.0  # standard deviations beyond which functions of the normal distribution are computed by continued fraction

NARROW, AHEAD = 1e-3, 8.0
"""For a draw margin below the first or a lead above the second, the closed form of a tie loses too many digits."""

# Gauss and Legendre's points above 0 with their weights: 32 points are exact to 1e-15 wherever a tie is not a win.
_POINTS, _WEIGHTS = (half[16:] for half in np.polynomial.legendre.leggauss(32))
_PAIRS = tuple(zip(_POINTS.tolist(), _WEIGHTS.tolist(), strict=True))

_ROOT = math.sqrt(0.5)
_DENSITY = math.sqrt(2 / math.pi)


def rate(
    matches: Matches,
    *,
    mu: float = 25.0,
    sigma: float = 25 / 3,
    beta: float = 25 / 6,
    tau: float | None = None,
    draw_probability: float | None = None,
    shuffles: int = 20,
    order: str = "shuffled",
    seed: int = 0,
) -> Ratings:
    """Rate by TrueSkill.

    ``mu`` and ``sigma`` are the mean and standard deviation of the first belief, ``beta`` the standard deviation of the
    performance of a model, ``tau`` the deviation added before each match (None: 0 over shuffles, sigma / 100 in file
    order) and ``draw_probability`` that of equal models (None: the share of ties, which for judges is far above the
    usual 0.1 of games). ``order`` is ``shuffled`` for a mean over that many seeded ``shuffles``, or ``file``. The
    result records ``tau`` and ``draw_probability`` as used.
    """
    parameters: dict[str, Any] = {"mu": mu, "sigma": sigma, "beta": beta, "tau": tau}
    parameters |= {"draw_probability": draw_probability, "shuffles": shuffles, "order": order, "seed": seed}
    notes = []
    if draw_probability is None:
        share = parameters["draw_probability"] = _share_of_ties(matches)
        notes.append(f"draw probability {share:.3f}: the share of ties among these matches")
    game, orders = _make_game(len(matches), parameters)
    ends = [game.play(matches, orders.last(index, len(matches))) for index in range(orders.count)]
    rating, spread = np.mean(ends, axis=0)
    if order != "file":
        rating += mu - rating.mean()
    used = parameters | {"tau": game.tau}
    return Ratings("trueskill", matches.models, rating, used, sigma=spread, notes=tuple(notes))


def redraw(matches: Matches, draws: Draws, **parameters: Any) -> Floats:
    """Ratings under each draw, shape (draws, models); see ``elo.redraw``."""
    rated = rate(matches, **parameters)
    game, orders = _make_game(len(matches), rated.parameters)
    shape = len(matches.models), count_common(orders), 1 + draws.count
    mean, variance = np.full(math.prod(shape), game.mu), np.full(math.prod(shape), game.sigma**2)

    def play(winner: NDArray[np.int64], loser: NDArray[np.int64], tied: NDArray[np.bool_]) -> None:
        up, down = variance[winner] + game.tau**2, variance[loser] + game.tau**2
        total = up + down + 2 * game.beta**2
        wide = np.sqrt(total)
        ahead = (mean[winner] - mean[loser]) / wide
        shift, shrink = win_effects(ahead - game.margin / wide)
        if tied.any():
            shift[tied], shrink[tied] = tie_effects(ahead[tied], game.margin / wide[tied])
        shift /= wide
        shrink /= total
        mean[winner] += up * shift
        mean[loser] -= down * shift
        variance[winner] = up * (1 - up * shrink)
        variance[loser] = down * (1 - down * shrink)

    replay(matches, orders, len(matches), draws, "trueskill", play)
    state = mean.reshape(shape)
    if orders.order != "file":
        state -= state.mean(axis=0)
    return rated.rating + combine_orders(state, orders)


@dataclass(frozen=True, slots=True)
class _TrueSkillGame:
    """The rules of the game; performances within ``margin`` tie."""

    mu: float
    sigma: float
    beta: float
    tau: float
    margin: float

    def play(self, matches: Matches, places: NDArray[np.int32]) -> tuple[list[float], list[float]]:
        """Means and standard deviations after these matches, one by one in Python floats for speed."""
        mean, variance = ([begin] * len(matches.models) for begin in (self.mu, self.sigma**2))
        margin, noise, room = self.margin, self.tau**2, 2 * self.beta**2
        sqrt = math.sqrt
        for start in range(0, len(places), CHUNK):
            results = (column.tolist() for column in read_results(matches, places[start : start + CHUNK]))
            for winner, loser, tied in zip(*results, strict=True):
                up, down = variance[winner] + noise, variance[loser] + noise
                total = up + down + room
                wide = sqrt(total)
                ahead = mean[winner] - mean[loser]
                shift, shrink = tie_effect(ahead / wide, margin / wide) if tied else win_effect((ahead - margin) / wide)
                shift /= wide
                shrink /= total
                mean[winner] += up * shift
                mean[loser] -= down * shift
                variance[winner] = up * (1 - up * shrink)
                variance[loser] = down * (1 - down * shrink)
        return mean, [sqrt(value) for value in variance]


def _share_of_ties(matches: Matches) -> float:
    """The share of ties, but below 1: with an infinite margin no match would matter."""
    ties = int(np.count_nonzero(matches.outcome == Matches.TIE))
    return ties / max(len(matches), ties + 1)


def _make_game(matches: int, p: Mapping[str, Any]) -> tuple[_TrueSkillGame, Orders]:
    orders = Orders(matches, p["order"], p["shuffles"], p["seed"])
    sigma, tau, chance = p["sigma"], p["tau"], p["draw_probability"]
    if tau is None:
        tau = sigma / 100 if orders.order == "file" else 0.0
    check_parameter("mu", p["mu"], "a number", True)
    check_parameter("sigma", sigma, "a number above 0", sigma > 0)
    check_parameter("beta", p["beta"], "a number above 0", p["beta"] > 0)
    check_parameter("tau", tau, "a number, 0 or more", tau >= 0)
    check_parameter("draw_probability", chance, "a number from 0 to below 1", 0 <= chance < 1)
    margin = float(ndtri((1 + chance) / 2)) * math.sqrt(2) * p["beta"]
    return _TrueSkillGame(p["mu"], sigma, p["beta"], tau, margin), orders


def win_effect(beyond: float) -> tuple[float, float]:
    """Shift of the means and shrinkage of the variance by a win, for a lead less the margin.

    The lead is in standard deviations of the difference of performances.
    """
    if beyond <= -TAIL:
        over = _excess_density(-beyond)
        return over - beyond, (over - beyond) * over
    shift = _DENSITY * math.exp(-beyond * beyond / 2) / math.erfc(-beyond * _ROOT)
    return shift, shift * (shift + beyond)


def tie_effect(ahead: float, margin: float) -> tuple[float, float]:
    """``win_effect`` for a tie, which lowers the model that is ahead."""
    lead = abs(ahead)
    if margin * lead > TAIL:  # the far end of the margin is out of reach, so this is a win of the model behind
        shift, shrink = win_effect(margin - lead)
    elif margin < NARROW or lead > AHEAD:
        shift, shrink = _inner_tie_effect(lead, margin)
    else:
        # Densities at both ends of the margin and the probability between, as multiples of the density at the near end.
        gone = math.expm1(-2 * margin * lead)
        inside = _mills_ratio(lead - margin) - (1 + gone) * _mills_ratio(lead + margin)
        shift = gone / inside
        shrink = min(max(shift * shift + (margin * (2 + gone) + lead * gone) / inside, 0.0), 1.0)
    return math.copysign(shift, -ahead), shrink


def win_effects(beyond: Floats) -> tuple[Floats, Floats]:
    """``win_effect`` for arrays."""
    shift = _DENSITY / erfcx(-beyond * _ROOT)
    over = shift + beyond
    if (far := beyond <= -TAIL).any():
        over[far] = _excess_density(-beyond[far])
    return shift, shift * over


def tie_effects(ahead: Floats, margin: Floats) -> tuple[Floats, Floats]:
    """``tie_effect`` for arrays."""
    lead = np.abs(ahead)
    gone = np.expm1(-2 * margin * lead)
    inside = (erfcx((lead - margin) * _ROOT) - (1 + gone) * erfcx((lead + margin) * _ROOT)) / _DENSITY
    near = (margin < NARROW) | (lead > AHEAD)
    inside[near] = 1.0
    shift = -gone / inside
    shrink = np.clip(shift * shift + (margin * (2 + gone) + lead * gone) / inside, 0.0, 1.0)
    if near.any():
        shift[near], shrink[near] = _inner_tie_effects(lead[near], margin[near])
    far = margin * lead > TAIL
    shift[far], shrink[far] = win_effects(margin[far] - lead[far])
    return np.copysign(shift, -ahead), shrink


def _inner_tie_effect(lead: float, margin: float) -> tuple[float, float]:
    """A tie by quadrature, for arguments at which the closed form cancels."""
    steep, bend = margin * lead, margin * margin / 2
    total = mean = square = 0.0
    for point, weight in _PAIRS:
        height = weight * math.exp(-bend * point * point)
        even = height * math.cosh(steep * point)
        total += even
        mean += height * point * math.sinh(steep * point)
        square += even * point * point
    mean /= total
    return lead - margin * mean, 1 - margin * margin * (square / total - mean * mean)


def _inner_tie_effects(lead: Floats, margin: Floats) -> tuple[Floats, Floats]:
    """``_inner_tie_effect`` for arrays; past ``TAIL``, where it is unused, it stays finite."""
    steep = np.minimum(margin * lead, TAIL)[:, None] * _POINTS
    height = _WEIGHTS * np.exp(-((margin[:, None] * _POINTS) ** 2) / 2)
    even = height * np.cosh(steep)
    total = even.sum(axis=1)
    mean = (height * np.sinh(steep) * _POINTS).sum(axis=1) / total
    square = (even * _POINTS**2).sum(axis=1) / total
    return lead - margin * mean, 1 - margin**2 * (square - mean**2)


def _excess_density(far: Any) -> Any:
    """Density over tail probability, minus the number, by Laplace's continued fraction: to 1e-16 from 30 on."""
    return 1 / (far + 2 / (far + 3 / (far + 4 / (far + 5 / (far + 6 / far)))))


def _mills_ratio(number: float) -> float:
    """Tail probability over density."""
    if number >= TAIL:
        return float(1 / (number + _excess_density(number)))
    return math.erfc(number * _ROOT) * math.exp(number * number / 2) / _DENSITY


trueskill = RatingSystem("trueskill", "TrueSkill for two players, averaged over shuffled orders", rate, redraw)
