package budget

import "time"

// AtLeast returns the lowest value of a refusal's setting with which the call would fit
// if nothing were reserved for other calls; in millionths of a dollar, milliseconds, or
// ones. It is 0 if no value helps, or the refusal lacks the numbers. Another limit may
// still refuse.
func (l Limits) AtLeast(r Refusal, s Spent) float64 {
	s.Active += r.After
	s.Idle += r.After
	if !l.refuses(r, s) {
		return 0
	}
	perUnit := 1.0
	switch setting, _ := Find(r.Setting); setting.Kind {
	case Money:
		perUnit = 1e6
	case Time, Idle:
		perUnit = float64(time.Second / time.Millisecond)
	}
	enough := func(n int64) bool {
		raised := l
		return raised.Set(r.Setting, float64(n)/perUnit) == nil && !raised.refuses(r, s)
	}
	low, high := int64(0), int64(1)<<43 // for a time, the longest that a duration can hold
	if !enough(high) {
		return 0
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return float64(high) / perUnit
}

// refuses reports whether the call still does not fit the setting of a refusal.
func (l Limits) refuses(r Refusal, s Spent) bool {
	if l.BeforeModelCall(s) == r.Setting || l.BeforeToolCall(s) == r.Setting {
		return true
	}
	if r.Call == (Call{}) {
		return false
	}
	_, refusal := l.Admit(s, Amount{}, r.Call)
	return refusal.Setting == r.Setting
}
