package journal

import "context"

// KeepsCounters is implemented by stores that keep sums, which the processes of the
// journal share.
type KeepsCounters interface {
	// Count adds n to a counter, which begins at 0, and returns the new sum. If n is
	// positive and the sum would exceed most, Count adds nothing and added is false; sum
	// is then the present one. An error means that it is unknown whether n was added.
	Count(ctx context.Context, counter string, n, most int64) (sum int64, added bool, err error)
}
