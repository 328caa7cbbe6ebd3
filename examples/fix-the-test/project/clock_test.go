package clock

import "testing"

func TestClock(t *testing.T) {
	for seconds, want := range map[int]string{0: "0:00:00", 65: "0:01:05", 3725: "1:02:05"} {
		if got := Clock(seconds); got != want {
			t.Errorf("Clock(%d) = %q, want %q", seconds, got, want)
		}
	}
}
