import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "generate_protos.py"


def test_the_generated_messages_are_current() -> None:
    answer = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
