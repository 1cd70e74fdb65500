from __future__ import annotations

import subprocess
import sys
import textwrap


def test_a_report_without_networks_does_without_tensorflow():
    """It is seconds, and lines on stderr that nobody asked for."""
    code = """
        import sys
        from tfpriv.datasets import TextDataset
        from tfpriv.evaluation import measure_quality, measure_utility
        from tfpriv.evaluation import report, report_run

        data = TextDataset([f"a{i} b c" for i in range(20)], ["x", "y"] * 10)
        measure_utility(data, data)
        quality = measure_quality(data.texts, data)
        report.report_text.distributions(quality, words=True)
        heavy = {"tensorflow", "keras", "torch", "tkinter", "matplotlib.pyplot"}
        print(sorted(heavy & set(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
