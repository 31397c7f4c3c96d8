"""Run folders as training leaves them, with scores of a test's choice."""

import json
import runpy

from tracerelay_jax.protocol import run_name

SLICES = {
    "distance": ["1-8", "9-16", "17-32", "33-64", "65-128", "129-256", "257-512", "513-1024", "1025-2048", ">2048"],
    "depth": [str(depth) for depth in range(1, 11)],
}


def config_of(root, task, dc, seed, inherit=True):
    """The config of `configs/TASK.py`, as config.json holds it."""
    get_config = runpy.run_path(str(root / "configs" / f"{task}.py"))["get_config"]
    made = get_config(f"dc={dc},seed={seed},inherit={'on' if inherit else 'off'}")
    return json.loads(json.dumps(made.to_dict()))


def metrics_of(task, length, score, examples, slices=None):
    """One length of result.json; slices and diagnostics have the score, but for those given."""
    given = slices or {}
    metrics = {"score": score, "cross_entropy": 0.1, "examples": examples, "fingerprint": f"{task} {length}"}
    if task == "dyck":
        for kind, names in SLICES.items():
            metrics[kind] = {name: {"closes": 1000, "accuracy": score} | given.get(f"{kind}/{name}", {}) for name in names}
        metrics["distance"][">2048"] = {"closes": 0, "accuracy": None}
    if task == "most_freq":
        metrics |= {name: given.get(name, score) for name in ("top1", "top2_prefix", "set_exact", "termination")}
        metrics["baselines"] = {"suffix_32": 0.02, "first_appearance": 0.01, "fixed_order": 0.008}
    return metrics


def write_run(
    root, results, task, dc, seed, inherit=True, scores=None, slices=None, history=((250, 0.5), (500, 0.995), (750, 0.993)),
    stopped_by="threshold", parameters=1000, minutes=12.0, tokens=2_000_000,
):  # fmt: skip
    """Writes one run into `results`/runs; `scores` is {length: fraction}, 0.5 where nothing is given."""
    name = run_name(task, dc, seed, inherit)
    folder = results / "runs" / name
    folder.mkdir(parents=True)
    config = config_of(root, task, dc, seed, inherit)
    (folder / "config.json").write_text(json.dumps({"command": ["launch/train.py"], "config": config}))
    events = []
    for update, score in history:
        events.append({"event": "train", "update": update, "loss": 0.1})
        events.append({"event": "validation", "update": update, "score": score, "cross_entropy": 1 - score})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    evaluation = config["evaluation"]
    lengths = {
        str(length): metrics_of(task, length, (scores or {}).get(length, 0.5), evaluation["examples"],
                                (slices or {}).get(length))
        for length in evaluation["id_lengths"] + evaluation["ood_lengths"]
    }  # fmt: skip
    best, score = max(history, key=lambda point: point[1])
    result = {
        "name": name, "task": task, "inherit_phase": inherit, "trace_widths": [64, dc, 64], "seed": seed,
        "parameters": parameters, "best_update": best, "final_update": history[-1][0], "stopped_by": stopped_by,
        "tokens": tokens, "minutes": minutes, "validation": {"score": score, "cross_entropy": 1 - score},
        "evaluation_seed": evaluation["seed"], "id_lengths": evaluation["id_lengths"],
        "ood_lengths": evaluation["ood_lengths"], "lengths": lengths, "device": {"kind": "cpu", "count": 2},
    }  # fmt: skip
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def edit(path, change):
    """Rewrites a JSON file after `change` of what it holds, in place."""
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
