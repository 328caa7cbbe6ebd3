// Package clock formats running times.
package clock

import "fmt"

// Clock formats a number of seconds as hours, minutes and seconds.
func Clock(seconds int) string {
	hours := seconds / 3600
	minutes := seconds / 60
	return fmt.Sprintf("%d:%02d:%02d", hours, minutes, seconds%60)
}
