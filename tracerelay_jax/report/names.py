"""What tasks and metrics are called in a report, in the paper's words."""

TASKS = {"equal_repeats": "Equal Repeats", "dyck": "Dyck", "most_freq": "Most-Freq"}
# Table 4.
DIAGNOSTICS = {
    "score": "Full exact",
    "top1": "Top-1",
    "top2_prefix": "Top-2 prefix",
    "set_exact": "Set exact",
    "termination": "Termination",
}
# Figure 4.
SHORTCUTS = {
    "suffix_32": "Suffix frequency (32)",
    "first_appearance": "First appearance",
    "fixed_order": "Fixed symbol order",
}


def slice_name(name: str) -> str:
    """`depth/1` as `Depth 1`, `distance/1-8` as `1–8`, as in Table 3."""
    kind, _, bounds = name.partition("/")
    return f"Depth {bounds}" if kind == "depth" else bounds.replace("-", "–")
