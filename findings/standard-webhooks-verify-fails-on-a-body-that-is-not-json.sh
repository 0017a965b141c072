#!/usr/bin/env bash
# standardwebhooks 1.1.0 (Python) and 1.1.1 (Node).
# Believed: verify() judges the signature alone, so a body that is correctly signed passes whatever it is, and every refusal is the
# library's WebhookVerificationError.
# Seen: verify() parses the body as JSON after the signature. Correctly signed text ends in JSONDecodeError or SyntaxError, which a receiver
# that catches the library's error answers with 500, and the sender tries again.
# Output: python WebhookVerificationError False JSONDecodeError / node WebhookVerificationError false SyntaxError
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target lib standardwebhooks==1.1.0
npm install --silent --no-audit --no-fund --ignore-scripts standardwebhooks@1.1.1 >/dev/null
cat >verify.py <<'P'
from datetime import datetime, timezone

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

hook, now, body = Webhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), datetime.now(timezone.utc), "paid"
headers = {"webhook-id": "m", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": hook.sign("m", now, body)}
try:
    print("python", hook.verify(body, headers))
except Exception as err:
    print("python WebhookVerificationError", isinstance(err, WebhookVerificationError), type(err).__name__)
P
cat >verify.js <<'J'
const { Webhook, WebhookVerificationError } = require("standardwebhooks");
const hook = new Webhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), now = new Date(), body = "paid";
const headers = {
  "webhook-id": "m", "webhook-timestamp": String(Math.floor(now / 1000)), "webhook-signature": hook.sign("m", now, body),
};
try {
  console.log("node", hook.verify(body, headers));
} catch (err) {
  console.log("node WebhookVerificationError", err instanceof WebhookVerificationError, err.constructor.name);
}
J
want='python WebhookVerificationError False JSONDecodeError
node WebhookVerificationError false SyntaxError'
got=$(PYTHONPATH=lib python3 verify.py && node verify.js)
diff <(echo "$want") <(echo "$got")
echo "as described"
