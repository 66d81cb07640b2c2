#!/usr/bin/env bash
# Sign a model file, verify it, and see a changed file refused.
#
#     pip install model-signing pyopenssl
#     bash docs/recipes/sign_model.sh
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

python - <<'PYTHON'
import numpy as np
import scne

X = np.random.default_rng(0).uniform(-2, 2, (500, 3))
scne.SCNERegressor(effort=1, random_state=0).fit(X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2]).save("air.scne")
PYTHON

# Once, by who publishes models: the private key stays with them, the public one goes to whoever verifies.
openssl ecparam -name prime256v1 -genkey -noout -out private.pem
openssl ec -in private.pem -pubout -out public.pem 2>/dev/null

model_signing sign key --private_key private.pem --signature air.sig air.scne
model_signing verify key --public_key public.pem --signature air.sig air.scne

# A changed file is not what was signed.
python -c 'data = bytearray(open("air.scne", "rb").read()); data[-1] ^= 1; open("air.scne", "wb").write(data)'
if model_signing verify key --public_key public.pem --signature air.sig air.scne; then
    echo "A changed file was accepted." >&2
    exit 1
fi
echo "The signature holds, and a changed file is refused."
