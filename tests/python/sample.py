"""An answer of `deeptail estimate --json`, made hostile where a page shows it."""

ESTIMATE = {
    "p": 1.2e-06,
    "log10_p": -5.92,
    "ci95": [2.4e-07, 4.9e-05],
    "status": "ok",
    "guarantee": "unbiased",
    "method": "tokensplit",
    "model": "<b>model</b>",
    "dist": "hex",
    "target": [37],
    "event": "says 37",
    "seed": 5,
    "settings": {"budget": 30000, "particles": None, "tilt": "auto"},
    "cost": {"forward": 17852, "backward": 0, "score_evals": 1, "logits": 2, "flops": 4e11, "forward_equivalents": 29696.3, "seconds": 1.5},
    "levels": [
        {"level": -2.8, "survive_fraction": 0.26, "particles": 2108, "ancestors": 558, "moves": 39, "acceptance": 0.74, "later": 1},
        {"level": 0.0, "survive_fraction": 0.001, "particles": 828, "ancestors": 172, "moves": 39, "acceptance": 0.5},
    ],
    "warnings": ["the budget is <small>"],
    "diagnostics": {"relative_sd": 0.48, "modes": 6.0},
    "triggers": [
        {"sample": 0, "tokens": [0, 18, 19], "text": "<script>23", "margin": 0.8, "pieces": ["<script>", "2", "3"]},
        {"sample": 1, "tokens": [0, 18], "prompt": "Say <i>", "continuation": "a & bomb", "match": [4, 8]},
    ],
    "positions": [{"position": 2, "token": 19, "share": 0.9, "prior": 0.07, "text": "3"}],
    "replicas": [6.7e-07, 0.0, 2.2e-06],
    "certain_low": 6.1e-08,
    "provenance": {"model_sha256": "9f", "dist_sha256": "9a", "version": "0.1.0", "device": "cpu"},
    "target_text": ["</svg>\"'\u0007"],
    "new_key": {"of": "a later version"},
}

NEVER = {**ESTIMATE, "p": 0.0, "log10_p": "-inf", "ci95": [0.0, 1.4e-05], "status": "not_reached_upper_bound", "triggers": [], "levels": [], "replicas": []}
