package llm

// Target is a model that a program can call: its name ("provider/model"), the client
// that calls it, and its price.
//
// A nil Price means that the price is unknown, so no cost limit can be enforced: an
// agent that sets one is refused, and under the default limit a run begins with a
// warning. The Price of a free model is the zero value, not nil. A Price without a
// value for cached tokens charges them like other input.
type Target struct {
	Name   string
	Client Model
	Price  *Price
}
