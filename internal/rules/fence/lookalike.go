package fence

import (
	"strings"
	"unicode"
)

// bracket reports whether a character resembles the bracket that begins a marker.
func bracket(r rune) bool {
	return strings.ContainsRune("＜﹤‹〈〈⟨≺˂ᐸ❮❰⟪《«≪⋖", r)
}

func invisible(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Variation_Selector, r)
}

// lookalikes are letters of other scripts, and letters with marks, that resemble the
// letters of the markers' name (from Unicode's list of confusables).
var lookalikes = [...]struct {
	letter rune
	as     string
}{
	{'u', "ùúûüũūŭůűųưǔʉʊʋυύцսµᴜᵤᵘ∪ՍᑌꓴÙÚÛÜŨŪŬŮŰŲƯǓ"},
	{'n', "ñńņňŉǹηήпոռɴɲɳᴎⁿₙℕΝꓠⲛⲚÑŃŅŇǸ"},
	{'t', "ţťŧțƫτтᴛᵗₜΤТᎢꓔ⊤†ţŢŤŦȚ"},
	{'r', "ŕŗřȑȓгᴦʀɼɽꭇꭈⲅᵣʳℝℛℜƦᎡᏒᖇꓣŔŖŘȐȒ"},
	{'s', "śŝşšșƽѕꜱʂˢₛЅՏᏚᏕꓢŚŜŞŠȘ"},
	{'e', "èéêëēĕėęěȅȇеёэєεέҽ℮ℯⅇɛᴇᵉₑΕЕЁℰᎬꓰⴹÈÉÊËĒĔĖĘĚ"},
	{'d', "ďđɖɗԁժᴅᵈⅆⅾᑯⅮᎠᗞᗪꓓĎĐ"},
}

// plain returns the small ASCII letter or digit that a character resembles, or the
// character itself.
func plain(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r < 0x80:
		return r
	case r >= '！' && r <= '～':
		return plain(r - '！' + '!')
	case r >= 'ⓐ' && r <= 'ⓩ':
		return r - 'ⓐ' + 'a'
	case r >= 'Ⓐ' && r <= 'Ⓩ':
		return r - 'Ⓐ' + 'a'
	case r >= '⒜' && r <= '⒵':
		return r - '⒜' + 'a'
	case r >= 0x1D400 && r <= 0x1D6A3: // mathematical letters; each style has capital and small ones
		return (r-0x1D400)%26 + 'a'
	case r >= 0x1D7CE && r <= 0x1D7FF: // mathematical digits
		return (r-0x1D7CE)%10 + '0'
	case r >= 0x1F110 && r <= 0x1F189: // letters in brackets, squares and circles
		return (r-0x1F110)%32 + 'a'
	case r >= 0x1F1E6 && r <= 0x1F1FF: // regional indicators, which form flags
		return r - 0x1F1E6 + 'a'
	}
	for _, l := range lookalikes {
		if strings.ContainsRune(l.as, r) {
			return l.letter
		}
	}
	return r
}
