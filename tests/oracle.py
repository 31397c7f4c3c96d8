"""The oracle: Eqs. (1)-(7) as literal loops over positions, in NumPy and float64; nothing is shared with the package."""

import numpy as np


def rms_norm(x, scale):
    return x / np.sqrt(np.mean(x * x) + 1e-6) * scale


def silu(x):
    return x / (1 + np.exp(-x))


def rope(x, position):
    """Rotates one head's vector by `position`: halves paired, base 10,000."""
    half = len(x) // 2
    out = np.empty_like(x)
    for i in range(half):
        angle = position * 10_000.0 ** (-i / half)
        out[i] = x[i] * np.cos(angle) - x[half + i] * np.sin(angle)
        out[half + i] = x[half + i] * np.cos(angle) + x[i] * np.sin(angle)
    return out


def attend(query, keys, values, offsets, position):
    """One query (N, K) over visible keys and values [(N, K)] at `offsets` from it; zeros if there are none."""
    heads, width = query.shape
    out = np.zeros((heads, width))
    for n in range(heads):
        scores = []
        for key, offset in zip(keys, offsets, strict=True):
            # Relative to the query: only the offset counts.
            turned = rope(key[n], offset) if position == "rope" else key[n]
            score = query[n] @ turned / np.sqrt(width)
            if position == "alibi":
                score -= 2.0 ** (-8.0 * (n + 1) / heads) * abs(offset)
            scores.append(score)
        if scores:
            weights = np.exp(np.array(scores) - max(scores))
            weights /= weights.sum()
            out[n] = sum(weight * value[n] for weight, value in zip(weights, values, strict=True))
    return out.reshape(-1)


def layer(c, p, h, valid):
    """One layer over one sequence: h (T, H), valid (T,); returns h^l (T, H), wrapped phases (T, D), flags (T,)."""
    length, w = len(h), c.stride

    def project(name, x, width):
        return tuple((x @ p[name][part].T).reshape(c.heads, width // c.heads) for part in ("query", "key", "value"))

    right = [project("right", rms_norm(h[t], p["right_norm"]["scale"]), c.writer_width) for t in range(length)]

    def delta(i):  # Eq. (1)
        seen = [j for j in range(i, i + c.right_window + 1) if j < length and valid[j]]
        o = attend(right[i][0], [right[j][1] for j in seen], [right[j][2] for j in seen], [j - i for j in seen], c.position)
        return c.alpha * np.tanh(o @ p["right_out"]["weight"].T @ p["P_delta"]["weight"].T)

    theta, v, m, out = [], [], [], []
    for t in range(length):
        q = t >= w and valid[t - w]
        u = delta(t - w) if q else np.zeros(c.trace_width)  # Eq. (2)
        if c.inherit_phase:
            theta_before, v_before = (theta[t - w], v[t - w]) if t >= w else (np.zeros(c.trace_width), False)
            theta.append(np.mod(theta_before + u, 2 * np.pi))  # Eq. (3)
            v.append(v_before or q)
        else:
            theta.append(np.mod(u, 2 * np.pi))
            v.append(q)
        readout = np.concatenate([np.cos(theta[t]), np.sin(theta[t])]) if v[t] else np.zeros(2 * c.trace_width)
        m.append(h[t] + readout @ p["P_phi"]["weight"].T)  # Eq. (4)

    left = [project("left", rms_norm(m[t], p["left_norm"]["scale"]), c.reader_width) for t in range(length)]
    for t in range(length):
        seen = [j for j in range(t - c.left_window, t + 1) if j >= 0 and valid[j]]
        o = attend(left[t][0], [left[j][1] for j in seen], [left[j][2] for j in seen], [j - t for j in seen], c.position)
        h_tilde = m[t] + o @ p["left_out"]["weight"].T @ p["P_L"]["weight"].T  # Eqs. (5), (6)
        x = rms_norm(h_tilde, p["ffn_norm"]["scale"])
        ffn = p["ffn"]
        gated = silu(x @ ffn["gate"]["weight"].T) * (x @ ffn["up"]["weight"].T)
        out.append(h_tilde + gated @ ffn["down"]["weight"].T)
    return np.array(out), np.array(theta), np.array(v)


def network(config, params, tokens, valid):
    """Logits (T, outputs) of one sequence, and [(theta, v)] of each layer."""
    p = params["params"]
    h = np.array([p["input"]["weight"][:, token] * ok for token, ok in zip(tokens, valid, strict=True)])
    states = []
    for index, c in enumerate(config.layers):
        h, theta, v = layer(c, p[f"layer_{index}"], h, valid)
        states.append((theta, v))
    normed = np.array([rms_norm(x, p["final_norm"]["scale"]) for x in h])
    return normed @ p["head"]["weight"].T + p["head"]["bias"], states
