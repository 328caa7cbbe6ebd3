package tool

// Seam is the number of bytes after a cut that are examined but not shown, so that a
// secret across the cut is recognized. It is longer than the longest secret that a run
// may declare, in base64 or in hex, broken into lines. In a hex dump with the text
// beside the bytes, or after long file names, only shorter secrets are recognized.
const Seam = 192 << 10

// SafeEnd returns an offset in a text, at most at, that does not split anything that
// redact removes: the text before it contains no part of a secret that continues. If
// the text is the beginning of a longer one, [Seam] bytes must follow at. A nil redact
// removes nothing.
func SafeEnd(text string, at int, redact func(string) string) int {
	if redact == nil {
		return max(0, at)
	}
	whole := redact(text)
	for at > 0 {
		shown := redact(text[:at])
		same := commonPrefix(whole, shown)
		if same == len(shown) {
			return at
		}
		at -= len(shown) - same
	}
	return 0
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
