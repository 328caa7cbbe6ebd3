package external

import "time"

// LimitIn is limitIn.
func LimitIn(text string, now time.Time) (said string, until *time.Time) {
	l := limitIn(text, now)
	return l.said, l.until
}
