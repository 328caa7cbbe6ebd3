# The tool ticket.lookup: arguments as JSON on stdin, the result on stdout.
# PAWL_IDEMPOTENCY_KEY is the same when a call is made again after a crash: a tool
# that changes something can give it to its service.
import json
import sys

TICKETS = {1: "The printer on floor 2 is on fire", 2: "A new keyboard, please"}

args = json.load(sys.stdin)
if args["id"] < 1:
    print("ticket numbers begin with 1", file=sys.stderr)
    sys.exit(2)  # a refusal: the call is not allowed
if args["id"] not in TICKETS:
    sys.exit(f"there is no ticket {args['id']}")  # exit code 1: an error that the model can act on
print(json.dumps({"id": args["id"], "title": TICKETS[args["id"]]}))
