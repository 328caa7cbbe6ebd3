package tool

// Seam is how many bytes behind a cut are looked at and not shown, so that a
// secret which the cut would go through is known for one. The longest secret
// that a run may declare has fewer in base64, and in hex, broken into lines; in a dump
// with the text beside the bytes, or behind long names of files, a shorter one has.
const Seam = 192 << 10

// SafeEnd is a place in a text, at or before the given one, where nothing that
// redact takes out goes on: who shows what is before it shows no half of a
// secret. Where the text is itself the beginning of a longer one, [Seam] bytes
// must follow the given place. A nil redact takes nothing out.
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
