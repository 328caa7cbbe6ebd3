package cli

import "unicode/utf8"

// textual rejects text that is not UTF-8. Journals and providers accept only text,
// so the run would receive something else.
func textual(name, said string) error {
	for at := 0; at < len(said); {
		c, size := utf8.DecodeRuneInString(said[at:])
		if c == utf8.RuneError && size == 1 {
			return usagef("%s is not UTF-8: the byte at offset %d is 0x%02x; convert it, for example with 'iconv -f ENCODING -t UTF-8'", name, at, said[at])
		}
		at += size
	}
	return nil
}
