"""Use ARISE's advantages and policy loss inside a trainer of your own.

The "model" is a table of logits that writes three tokens; the task succeeds only if all three are right, so at the
start nearly every group fails as a whole. Each rubric asks for one right token. Run: python examples/foreign_trainer.py
"""

import numpy as np

from arise import combined_advantages, policy_loss

POSITIONS, WORDS, GROUP, UPDATES = 3, 8, 8, 80
RIGHT = np.array([5, 2, 7])


def train(rubric_weight: float) -> tuple[float, float]:
    """Return the share of all-failure groups in training, and the success probability at the end."""
    random = np.random.default_rng(0)
    logits = np.zeros((POSITIONS, WORDS))
    all_failed = 0
    for _ in range(UPDATES):
        probability = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        # Rollouts: one row per trajectory.
        tokens_JU = np.stack([random.choice(WORDS, GROUP, p=row) for row in probability], axis=1)
        verdict_IJ = (tokens_JU == RIGHT).T.astype(float)  # rubric i passes; nan would mean "no verdict"
        reward_J = verdict_IJ.all(axis=0).astype(float)
        all_failed += not reward_J.any()

        # Eq. 16: task reward and rubrics, each normalised within the group, then combined.
        advantage_J = combined_advantages(reward_J, verdict_IJ, rubric_weight)

        # Eq. 19 over the flattened tokens; behaviour log-probs are those recorded when the tokens were sampled.
        logprob_U = np.log(probability)[np.arange(POSITIONS), tokens_JU].ravel()
        loss = policy_loss(logprob_U, logprob_U, np.repeat(advantage_J, POSITIONS), np.ones_like(logprob_U))

        # Backward through log-softmax, then plain gradient descent.
        for gradient, position, token in zip(
            loss.gradient_U, np.tile(np.arange(POSITIONS), GROUP), tokens_JU.ravel(), strict=True
        ):
            logits[position] -= 4.0 * gradient * (np.eye(WORDS)[token] - probability[position])
    final = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return all_failed / UPDATES, float(final[np.arange(POSITIONS), RIGHT].prod())


if __name__ == "__main__":
    for name, weight in (("outcome only", 0.0), ("outcome and rubrics", 0.3)):
        failed, success = train(weight)
        print(f"{name:20} all-failure groups {failed:4.0%}   success at the end {success:4.0%}")
