#!/usr/bin/env python3
"""check_terminal.py PROGRAM MPIRUN GENERATED: what a person sees on a terminal, in a pseudo terminal: the progress line of bench, its
pairs and run (there, with an estimate that falls, within the width, gone at the end), none in a pipe and on a dumb terminal; the screen
that a run ends in; completion by the Tab key."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

PROGRAM, MPIRUN, GENERATED = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1', OMPI_MCA_mpi_yield_when_idle='1', LC_ALL='C.UTF-8')
TWO = [MPIRUN, '-q', '-np', '2', '--oversubscribe', '--bind-to', 'none', PROGRAM]
PLAIN = [PROGRAM, 'bench', '--backend', 'local', '--ranks', '2', '-e', '4K', '--place', 'out', '--stop-rel-ci', '0.9', '--budget', '50ms']
faults = []


def fault(text):
    faults.append(text)
    print('check_terminal: ' + text, file=sys.stderr)


def start(words, env, columns):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(words[0], words, env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 40, columns, 0, 0))
    return pid, terminal


def on_terminal(words, columns=120, **changes):
    """(exit code, all that came)"""
    pid, terminal = start(words, dict(ENV, **{"TERM": "xterm", **changes}), columns)
    said = b''
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # closed
            break
        if not part:
            break
        said += part
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode('utf-8', 'replace').replace('\r\n', '\n')


def shown(said):
    """The progress lines in order."""
    return re.findall(r'\r\x1b\[K(\[ *\d+/\d+\][^\r\n]*)', said)


def remains(said):
    """What stands on the screen at the end: each line after the last time that it was cleared."""
    return [line.rsplit('\r\x1b[K', 1)[-1] for line in said.split('\n')]


def progress(name, words, columns=120, estimates=True, **changes):
    code, said = on_terminal(words, columns, **changes)
    lines = shown(said)
    if code != 0:
        fault(f'{name}: exit {code}: {said[-400:]}')
    if not lines:
        fault(f'{name}: no progress line: {said[:400]!r}')
    for line in lines:
        done, total = map(int, re.match(r'\[ *(\d+)/(\d+)\]', line).groups())
        if not 1 <= done <= total:
            fault(f'{name}: {line}')
        if len(line) >= columns:
            fault(f'{name}: {len(line)} columns on a terminal of {columns}: {line}')
    if any(re.match(r'\[ *\d+/\d+\]', line) for line in remains(said)):
        fault(f'{name}: a progress line is left: {said[-400:]!r}')
    left = [float(m) for m in re.findall(r', (\d+) s left', '\n'.join(lines))]
    if estimates and (not left or left[-1] > max(left) or left[-1] > 30):
        fault(f'{name}: estimates {left} in {lines}')
    if re.search(r', \d+\.\d+ ', '\n'.join(lines)):
        fault(f'{name}: an estimate with decimals: {lines}')
    return said


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    # One process; a narrow terminal cuts the line, NO_COLOR and Chinese change nothing of it.
    progress('bench', PLAIN, estimates=False)
    progress('bench, 24 columns', PLAIN, columns=24, estimates=False)
    said = progress('bench, Chinese', PLAIN + ['--lang', 'zh'], estimates=False, NO_COLOR='1')
    if re.search(r'\x1b\[[0-9;]*m', said):
        fault('bench: colours in spite of NO_COLOR')
    if '\x1b' in on_terminal(PLAIN, TERM='dumb')[1]:
        fault('a dumb terminal gets control sequences')
    piped = subprocess.run(PLAIN, env=ENV, capture_output=True)
    if b'\x1b' in piped.stdout + piped.stderr or b'\r' in piped.stdout + piped.stderr:
        fault('control characters in a pipe')

    # Under mpirun the launcher's terminal counts.
    progress('pairs under mpirun', TWO + ['bench', '--cases', 'pairs', '--pair-bytes', '64K'], estimates=False)
    said = progress('run under mpirun', TWO + ['run', '--model', 'gpt2-124m', '-e', '64K', '--budget', '300ms', '-o', 'out'])
    screen = '\n'.join(remains(said)).strip('\n')
    lines = screen.split('\n')
    print(screen)
    for line in lines:
        if len(line) > 100:
            fault(f'the screen of a run is wider than 100 columns: {line}')
    if not 12 <= len(lines) <= 44:
        fault(f'the screen of a run has {len(lines)} lines')
    for wanted in ('no GPU found', 'Measured', 'all_reduce', 'Findings', 'A second node', 'out/report.txt', 'out/results.jsonl'):
        if wanted not in screen:
            fault(f'the screen of a run has no "{wanted}"')
    numbered = re.findall(r'^ (\d)  \S', screen, re.M)
    if numbered != [str(i + 1) for i in range(len(numbered))] or len(numbered) > 3:
        fault(f'findings {numbered}; at most three are shown')
    for name in re.findall(r'\bout/\S+', screen):
        if not os.path.exists(name):
            fault(f'the screen names {name}, which is not there')
    for name in os.listdir('out'):
        if f'out/{name}' not in screen:
            fault(f'the screen does not name {name}, which was written')

    # bash itself: two characters, then Tab.
    with open(folder + '/rc', 'w') as rc:
        rc.write(f"PS1='$ '\n. {GENERATED}/nodeworth\nPATH={os.path.dirname(PROGRAM)}:$PATH\nbind 'set enable-bracketed-paste off'\n")
    pid, terminal = start(['bash', '--noprofile', '--rcfile', folder + '/rc', '-i'], dict(ENV, TERM='dumb', INPUTRC='/dev/null'), 200)
    said, end, typed = b'', time.time() + 20, False
    while time.time() < end and b'# typed' not in said:
        if select.select([terminal], [], [], 0.2)[0]:
            said += os.read(terminal, 65536)
        if not typed and said.endswith(b'$ '):  # bash listens
            os.write(terminal, b'nodeworth deci\t--model llama-2-7b --precision=bf\t--framework deepsp\t# typed')
            typed = True
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    if b'nodeworth decide --model llama-2-7b --precision=bf16 --framework deepspeed # typed' not in said:
        fault(f'Tab in bash: {said!r}')

sys.exit(bool(faults))
