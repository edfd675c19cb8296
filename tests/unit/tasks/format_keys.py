"""Every key of the two task formats, with a value."""

HARBOR = """
schema_version = "1.4"
source = "somewhere"
multi_step_reward_strategy = "mean"
artifacts = ["/app/out", { source = "/app/x", destination = "x", exclude = ["*.tmp"], service = "main" }]
[task]
name = "org/name"
version = "2"
description = "d"
authors = [{ name = "n", email = "e" }]
keywords = ["k"]
[metadata]
anything = 1
[agent]
timeout_sec = 1
user = "root"
network_mode = "allowlist"
allowed_hosts = ["example.org", "*.example.org", "192.0.2.1", "192.0.2.0/24"]
[verifier]
timeout_sec = 1
user = 0
network_mode = "no-network"
allowed_hosts = []
environment_mode = "separate"
env = { A = "b" }
collect = [{ command = "true", service = "main", timeout_sec = 1, user = "root" }]
[verifier.environment]
docker_image = "x"
[environment]
network_mode = "public"
allowed_hosts = []
build_timeout_sec = 1
docker_image = "x"
os = "Linux"
cpus = 1.5
memory_mb = 1
storage_mb = 1
gpus = 0
gpu_types = ["T4"]
skills_dir = "/skills"
workdir = "/app"
mcp_servers = [{ name = "x", transport = "stdio", command = "y", args = [], headers = {} }]
tpu = { type = "v6e", topology = "2x4" }
env = { A = "b" }
[environment.healthcheck]
command = "true"
interval_sec = 1
timeout_sec = 1
start_period_sec = 1
start_interval_sec = 1
retries = 1
[solution]
env = { A = "b" }
[[steps]]
name = "one"
min_reward = { reward = 0.5 }
artifacts = ["/app/y"]
healthcheck = { command = "true" }
agent = { timeout_sec = 1, user = "root", network_mode = "public" }
verifier = { timeout_sec = 1, env = { B = "c" } }
"""
BENCHFLOW = """
schema_version: "1.3"
name: short
image: base:1
source: somewhere
reward: {}
profile: code-change
profiles: [code-change]
agents: {}
scenes: []
user: {}
benchflow: {}
multi_step_reward_strategy: final
artifacts: [{source: /x, destination: y, exclude: []}]
task: {name: a/b, version: "1", description: d, authors: [], keywords: []}
metadata: {category: data}
agent: {timeout_sec: 1, user: root, network_mode: public, prompt_prefix: x}
sandbox:
  network_mode: denylist
  blocked_hosts: [github.com]
  blocked_urls: [https://example.org/paper]
  image: base:1
  docker_image: base:1
  bugswarm_image_tag: x
  build_timeout_sec: 1
  os: linux
  cpus: 1
  memory_mb: 1
  storage_mb: 1
  memory: 1M
  storage: 1M
  allow_internet: true
  gpus: 1
  gpu_types: [T4]
  tpu: {type: v4, topology: 2x2}
  mcp_servers: []
  env: {}
  skills_dir: /skills
  workdir: /app
  healthcheck: {command: "true"}
  setup_commands: [{command: make, timeout_sec: 1, cwd: /app, env: {}, user: root, service: main}]
verifier:
  type: test-script
  timeout_sec: 1
  env: {}
  reward_range: [-1, 1]
  user: root
  network_mode: public
  sandbox_mode: separate
  sandbox: {docker_image: x}
  service: main
  judge: {}
  memory: {expected_skills: []}
  hardening: {cleanup_conftests: true}
  pytest_plugins: []
oracle: {env: {}, timeout_sec: 1, TOKEN: x}
steps: []
"""
