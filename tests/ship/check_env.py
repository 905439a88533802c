#!/usr/bin/env python3
"""check_env.py PROGRAM WITH_NODES: `nodeworth env` says what a report needs, and nothing that must not be shown: planted tokens,
names of hosts and of the user stay out, in text and JSON, alone and under mpirun over two hosts, where differences are told."""
import json
import os
import socket
import subprocess
import sys

PROGRAM, WITH_NODES = sys.argv[1:3]
SECRET = 'c0ffee5ecret'
PLANTED = {
    'HF_TOKEN': 'hf_' + SECRET, 'AWS_SECRET_ACCESS_KEY': SECRET, 'WANDB_API_KEY': SECRET, 'NCCL_AUTH_TOKEN': SECRET, 'UCX_PASSWORD': SECRET,
    'OMPI_MCA_sec_key': SECRET, 'NCCL_NET_PLUGIN': 'https://ann:' + SECRET + '@host/plugin', 'UCX_LOG_FILE': 'ghp_' + SECRET,
    'HTTPS_PROXY': 'http://ann:' + SECRET + '@proxy', 'GITHUB_PAT': SECRET, 'NOT_KNOWN': SECRET}
SHOWN = {'NCCL_DEBUG': 'WARN', 'UCX_TLS': 'rc,sm', 'CUDA_VISIBLE_DEVICES': '0,1', 'HOME': '/home/ann5ecret',
         'LD_LIBRARY_PATH': '/home/ann5ecret/lib:/opt/lib', 'LC_ALL': 'C.UTF-8'}
faults = []


def fault(text):
    faults.append(text)
    print('check_env: ' + text, file=sys.stderr)


def ask(*words, before=()):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(('OMPI_', 'PMIX_', 'NCCL_', 'UCX_'))}
    environment.update(PLANTED, **SHOWN, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
    run = subprocess.run([*before, PROGRAM, 'env', *words], env=environment, capture_output=True, text=True, timeout=60)
    if run.returncode == 77 and before:
        return None
    if run.returncode:
        fault(f'{words}: exit {run.returncode}: {run.stderr}')
    for what in (SECRET, 'ann5ecret', *(name for name in PLANTED if name not in ('NCCL_NET_PLUGIN', 'UCX_LOG_FILE'))):
        if what in run.stdout:
            fault(f'{words}: shows {what}')
    return run.stdout


text = ask()
version = subprocess.run([PROGRAM, '--version'], capture_output=True, text=True).stdout.split()[1]
for wanted in (version, 'kernel', 'compiler', 'built_with', 'memlock_bytes', 'open_files', 'libhwloc.so', 'CUDA driver', 'NCCL', 'NCCL_DEBUG',
               'rc,sm', '~/lib:/opt/lib', 'gpus', 'cpu'):
    if wanted not in text:
        fault(f'the text has no "{wanted}"')
if len(socket.gethostname()) > 5 and socket.gethostname() in text:
    fault('the text names the host')
wide = [line for line in text.split('\n') if len(line) > 100 and 'Please attach' not in line]
if wide:
    fault(f'wider than 100 columns: {wide[0]}')

said = json.loads(ask('--json'))
host = said['hosts'][0]
if said['schema'] != 'nodeworth-env/1' or len(said['hosts']) != 1 or 'launch' in said:
    fault(f'JSON: {said["schema"]}, {len(said["hosts"])} hosts')
if host['system']['kernel'] != os.uname().release or host['nodeworth']['version'] != version:
    fault(f'JSON: {host["system"]}')
if host['environment'].get('UCX_LOG_FILE') != host['environment'].get('NCCL_NET_PLUGIN') or 'hidden' not in host['environment']['UCX_LOG_FILE']:
    fault(f'JSON: {host["environment"]}')
for name, library in host['libraries'].items():
    if not isinstance(library, str) and not os.path.exists(library['path']):
        fault(f'JSON: {name}: {library}')

# Two hosts: on the second fewer open files and another variable.
two = ask(before=[WITH_NODES, '2x1', 'none', 'sh', '-c', 'if [ "$(hostname)" = node2 ]; then ulimit -n 600; export NCCL_DEBUG=INFO UCX_NET_DEVICES=eth9; fi; exec "$@"', 'sh'])
if two is None:
    print('skipped: two hosts need root and namespaces')
else:
    for wanted in ('ranks    2', 'hosts    2', 'host 1: open_files: 600 here', 'host 1: NCCL_DEBUG: INFO here, WARN on host 0',
                   'host 1: UCX_NET_DEVICES: eth9 here, not there on host 0'):
        if wanted not in two:
            fault(f'two hosts: no "{wanted}" in {two[-1500:]}')
    if two.count('host 1: ') > 6:
        fault(f'two hosts on one machine differ in more than was changed: {two[-1500:]}')
    if two.count('compiler ') != 1:
        fault('two hosts: not rank 0 alone speaks')
sys.exit(bool(faults))
