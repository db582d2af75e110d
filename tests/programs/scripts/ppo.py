"""A PPO-like sampler: a policy with validated distributions, advantages, shuffled minibatches, a clipped loss."""

from __future__ import annotations

import torch
from measure import measured
from torch.distributions import Categorical, Normal

STEPS, WORLDS, STATE, ACTIONS = 16, 8, 12, 4
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.2


class Agent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(STATE, 64), torch.nn.Tanh())
        self.actor, self.critic = torch.nn.Linear(64, ACTIONS), torch.nn.Linear(64, 1)

    def forward(self, state):
        hidden = self.body(state)
        return Categorical(logits=self.actor(hidden), validate_args=True), self.critic(hidden).squeeze(-1)


def sample(agent: Agent) -> list[torch.Tensor]:
    states = torch.randn(STEPS + 1, WORLDS, STATE, device="cuda")
    actions = torch.zeros(STEPS, WORLDS, dtype=torch.long, device="cuda")
    logs, rewards, values = (torch.zeros(STEPS, WORLDS, device="cuda") for _ in range(3))
    done = torch.zeros(STEPS, WORLDS, device="cuda")
    with torch.no_grad():
        for t in range(STEPS):
            policy, values[t] = agent(states[t])
            actions[t] = policy.sample()
            logs[t] = policy.log_prob(actions[t])
            rewards[t] = torch.tensor([float(a % 2) for a in actions[t].cpu().numpy()], device="cuda")
            done[t] = (rewards[t] > 2).float()
        _, after = agent(states[STEPS])
    advantages, last = torch.zeros_like(rewards), torch.zeros(WORLDS, device="cuda")
    for t in reversed(range(STEPS)):
        following = after if t == STEPS - 1 else values[t + 1]
        delta = rewards[t] + GAMMA * following * (1 - done[t]) - values[t]
        advantages[t] = last = delta + GAMMA * LAMBDA * (1 - done[t]) * last
    return [states[:STEPS].flatten(0, 1), *(x.flatten() for x in (actions, logs, advantages, advantages + values))]


def learn(agent: Agent, optimizer: torch.optim.Optimizer, batch: list[torch.Tensor]) -> None:
    for chosen in torch.randperm(STEPS * WORLDS, device="cuda").split(32):
        states, actions, logs, advantages, returns = (x[chosen] for x in batch)
        policy, values = agent(states)
        ratio = (policy.log_prob(actions) - logs).exp()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        clipped = torch.max(-advantages * ratio, -advantages * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
        loss = clipped - 0.01 * policy.entropy().mean() + 0.5 * (values - returns).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        difference = (logs - policy.log_prob(actions)).mean().item()
        if difference > 1e6:
            break


def main() -> None:
    agent = Agent().cuda()
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
    for _ in range(2):
        learn(agent, optimizer, sample(agent))
    spread = Normal(torch.zeros(4, device="cuda"), torch.ones(4, device="cuda"), validate_args=True)
    assert spread.rsample().shape == (4,)


if __name__ == "__main__":
    with measured("ppo"):
        main()
