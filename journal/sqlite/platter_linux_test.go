package sqlite_test

import (
	"maps"
	"math/rand/v2"
	"slices"
)

const (
	sectorSize = 512
	cachePage  = 4096
)

// platter is a file as the system's cache has it, and as the disk may have it.
type platter struct {
	cache, disk []byte
	// dirty has, for each sector that was written since the last sync, what it
	// was in turn; sizes what the file's size was.
	dirty map[int64][][]byte
	sizes []int
}

func (p *platter) resize(size int) {
	p.cache = append(p.cache[:min(size, len(p.cache))], make([]byte, max(0, size-len(p.cache)))...)
	p.sizes = append(p.sizes, size)
}

// write makes whole pages of the cache dirty, as the system does.
func (p *platter) write(b []byte, offset int64) {
	if end := int(offset) + len(b); end > len(p.cache) {
		p.resize(end)
	}
	copy(p.cache[offset:], b)
	for at := offset / cachePage * cachePage; at < offset+int64(len(b)); at += cachePage {
		for s := at / sectorSize; s < (at+cachePage)/sectorSize; s++ {
			sector := make([]byte, sectorSize)
			copy(sector, p.cache[min(s*sectorSize, int64(len(p.cache))):])
			p.dirty[s] = append(p.dirty[s], sector)
		}
	}
}

// sync writes what is dirty, and nothing that a sync which failed has given up.
func (p *platter) sync() {
	p.disk = p.disk[:min(len(p.disk), slices.Min(append(p.sizes, len(p.cache))))]
	p.disk = append(p.disk, make([]byte, len(p.cache)-len(p.disk))...)
	for s := range p.dirty {
		if at := int(s * sectorSize); at < len(p.cache) {
			copy(p.disk[at:], p.cache[at:min(at+sectorSize, len(p.cache))])
		}
	}
	p.sizes = nil
	clear(p.dirty)
}

// fail is a sync that fails: what it did not write is not tried again.
func (p *platter) fail(r *rand.Rand) {
	p.disk, p.sizes = p.lose(r), nil
	clear(p.dirty)
}

// lose is what the disk may have now, sector by sector or page by page.
func (p *platter) lose(r *rand.Rand) []byte {
	sizes := append([]int{len(p.disk)}, p.sizes...)
	size := sizes[r.IntN(len(sizes))]
	disk := append(slices.Clone(p.disk[:min(size, len(p.disk))]), make([]byte, max(0, size-len(p.disk)))...)
	torn, kept := r.IntN(2) == 0, r.Float64()
	choice, page := 0.0, int64(-1)
	for _, s := range slices.Sorted(maps.Keys(p.dirty)) {
		if at := s * sectorSize / cachePage; torn || at != page {
			page, choice = at, r.Float64()
			if r.Float64() < kept {
				choice = 1
			}
		}
		versions := p.dirty[s]
		if n := int(choice * float64(len(versions)+1)); n > 0 && s*sectorSize < int64(size) {
			copy(disk[s*sectorSize:], versions[min(n, len(versions))-1])
		}
	}
	return disk
}

// behind is the disk where only what is dirty behind a place was written.
func (p *platter) behind(from int64) []byte {
	disk := slices.Clone(p.disk)
	for s, versions := range p.dirty {
		if at := s * sectorSize; at >= from && at < int64(len(disk)) {
			copy(disk[at:], versions[len(versions)-1])
		}
	}
	return disk
}
