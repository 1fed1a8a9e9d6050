"""Reinforcement learning: a policy balances a pole on a cart, and learns from its own games.

    castell train --output run --task trainer.examples.policy_gradient:CartPole \
        --steps 200 --global-batch 32 --schedule constant --learning-rate 0.01 --optimizer adam

What it shows: a batch that the task makes itself (`batches`), inside the step, with the weights of
the moment: one row is one game, played by TensorFlow ops, and no data set is read. A row's
randomness comes from (step, place), so that two workers play the games that one would.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import keras
import tensorflow as tf
from pydantic import Field

from trainer.data.dataset import Dataset
from trainer.task import Batch, NoOptions, Objective, Task, Tensors
from trainer.tasks.lists import WIDEST

# Barto, Sutton and Anderson (1983), in metres, kilograms, seconds, newtons.
_GRAVITY, _CART, _POLE, _HALF_LENGTH, _FORCE, _TICK = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
_FARTHEST, _STEEPEST = 2.4, math.radians(12)
_LOST = 10.0  # a game that is over goes on, and counts no more
_LONGEST_GAME = 180_000  # an hour
_STATE = 4  # position, speed, angle, spin


class CartPoleOptions(NoOptions):
    """Settings of the games and of the nets."""

    ticks: int = Field(
        200, gt=0, le=_LONGEST_GAME, description="length of a game, if the pole stays up"
    )
    discount: float = Field(0.98, gt=0, lt=1, description="what a tick later counts less")
    hidden: int = Field(32, gt=0, le=WIDEST, description="width of both nets")


class Game(NamedTuple):
    """Games, float32 [ticks, games, …]: states of 4, right 0 or 1, alive 1 until the pole falls."""

    states: tf.Tensor
    right: tf.Tensor
    alive: tf.Tensor


class CartPole(Task):
    """REINFORCE with a critic as the baseline."""

    Options = CartPoleOptions
    options: CartPoleOptions

    def build(self, data: Dataset) -> None:
        """Makes the policy (a logit for pushing right) and the critic (how long it will last)."""

        def net() -> keras.Model:
            states = keras.Input((None, _STATE))  # [games, ticks, 4]
            hidden = keras.layers.Dense(self.options.hidden, "tanh")(states)
            return keras.Model(states, keras.layers.Dense(1, dtype="float32")(hidden))

        self.policy, self.critic = net(), net()

    def batches(self, step: tf.Tensor, rows: tf.Tensor) -> Batch:
        """Plays one game a row; its course is data to the losses, `rest` what was still to come."""
        game, discount = self.play(step, rows), self.options.discount
        nothing = tf.zeros_like(game.alive[0])
        rest = tf.scan(lambda r, a: a * (1 + discount * r), game.alive, nothing, reverse=True)
        course = {**game._asdict(), "rest": rest * (1 - discount)}
        features = {k: tf.stop_gradient(keras.ops.swapaxes(v, 0, 1)) for k, v in course.items()}
        return Batch(features, tf.reduce_sum(game.alive, axis=0), tf.ones_like(nothing))

    def objectives(self) -> Sequence[Objective]:
        """The policy and the critic learn side by side."""
        return (
            Objective("policy", self._policy_loss, self.policy.trainable_variables),
            Objective("critic", self._critic_loss, self.critic.trainable_variables),
        )

    def _policy_loss(self, batch: Batch, training: bool) -> tf.Tensor:
        """Mean over a game of -log(probability of what was done) * (what came - what was due)."""
        course = batch.features
        surprise = tf.nn.sigmoid_cross_entropy_with_logits(
            course["right"], self.policy(course["states"])[..., 0]
        )
        better = course["rest"] - tf.stop_gradient(self.critic(course["states"])[..., 0])
        return tf.reduce_mean(course["alive"] * surprise * better, axis=1)

    def _critic_loss(self, batch: Batch, training: bool) -> tf.Tensor:
        course = batch.features
        error = course["rest"] - self.critic(course["states"])[..., 0]
        return tf.reduce_mean(course["alive"] * tf.square(error), axis=1)

    def play(self, step: tf.Tensor, rows: tf.Tensor) -> Game:
        """Plays the games number `rows` [games] of a step, with the policy as it is."""
        spec = tf.TensorSpec([_STATE + self.options.ticks])

        def drawn(row: tf.Tensor) -> tf.Tensor:
            return tf.random.stateless_uniform(spec.shape, seed=tf.stack([step, row]))

        chances = tf.transpose(tf.map_fn(drawn, rows, fn_output_signature=spec))
        state = 0.1 * tf.transpose(chances[:_STATE]) - 0.05

        def tick(now: Game, chance: tf.Tensor) -> Game:
            state = _move(now.states, now.right)
            likely = self.serve({"state": state})["probability"]
            up = (tf.abs(state[:, 0]) < _FARTHEST) & (tf.abs(state[:, 2]) < _STEEPEST)
            right, alive = tf.cast(chance < likely, tf.float32), tf.cast(up, tf.float32)
            return Game(state, right, now.alive * alive)

        # Before the first tick half a push to either side, which is none.
        half, alive = tf.fill(tf.shape(rows), 0.5), tf.ones_like(state[:, 0])
        return tf.scan(tick, chances[_STATE:], Game(state, half, alive))

    def serve(self, features: Tensors) -> Tensors:
        """Maps `state` [games, 4] to the probability of pushing to the right."""
        return {"probability": tf.sigmoid(self.policy(features["state"][:, tf.newaxis])[:, 0, 0])}


def _move(state: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """One tick of the cart (Euler), pushed with 2 * right - 1 times the force."""
    x, speed, angle, spin = tf.unstack(state, axis=1)
    sine, cosine, mass = tf.sin(angle), tf.cos(angle), _CART + _POLE
    push = ((2 * right - 1) * _FORCE + _POLE * _HALF_LENGTH * spin**2 * sine) / mass
    turn = _GRAVITY * sine - cosine * push
    turn /= _HALF_LENGTH * (4 / 3 - _POLE * cosine**2 / mass)
    gain = push - _POLE * _HALF_LENGTH * turn * cosine / mass
    now = [x + _TICK * speed, speed + _TICK * gain, angle + _TICK * spin, spin + _TICK * turn]
    return tf.clip_by_value(tf.stack(now, axis=1), -_LOST, _LOST)
