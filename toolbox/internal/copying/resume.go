// SPDX-License-Identifier: Apache-2.0

package copying

import (
	"archive/tar"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// OffsetRecord is the record of an entry of which only the rest is packed: so many bytes are there already. In the
// archive they are a hole.
const OffsetRecord = "WHERRY.offset"

// Reached says how far an archive has come to somebody who now asks for the rest of it: to a number of bytes of one
// entry, with all before that.
type Reached struct {
	Name    string // of the entry, without a slash at its end
	Offset  int64  // bytes of it that have come
	Size    int64  // that it had then, if it is a file
	ModTime time.Time
}

// ParseReached reads OFFSET:SIZE:NANOSECONDS:NAME; the time is that of the file's last change, since 1970.
func ParseReached(text string) (r Reached, err error) {
	parts := strings.SplitN(text, ":", 4)
	var numbers [3]int64
	for i := range numbers {
		if len(parts) != 4 {
			return r, fmt.Errorf("%.100q: want OFFSET:SIZE:NANOSECONDS:NAME", text)
		}
		if numbers[i], err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return r, fmt.Errorf("%.100q: want OFFSET:SIZE:NANOSECONDS:NAME: %w", text, err)
		}
	}
	r = Reached{Name: strings.TrimSuffix(parts[3], "/"), Offset: numbers[0], Size: numbers[1],
		ModTime: time.Unix(0, numbers[2])}
	if r.Name == "" || r.Offset < 0 || r.Offset > r.Size {
		return r, fmt.Errorf("%.100q: want the name of an entry, and an offset within its size", text)
	}
	return r, nil
}

// before tells whether an entry, other than the one that was reached, comes before it in the order of an archive: a
// folder comes before what is in it, and that in the order of the names' bytes.
func (r *Reached) before(name string) bool {
	if r == nil {
		return false
	}
	a, b := strings.Split(strings.TrimSuffix(name, "/"), "/"), strings.Split(r.Name, "/")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return len(a) < len(b)
}

// there tells whether an entry that is no file has come.
func (r *Reached) there(name string) bool {
	return r != nil && (strings.TrimSuffix(name, "/") == r.Name && r.Offset == r.Size || r.before(name))
}

// rest is from where on a file is still to come; its size, if all of it has. One that has changed is to come whole.
func (r *Reached) rest(h *tar.Header) int64 {
	switch {
	case r == nil:
		return 0
	case r.before(h.Name):
		return h.Size
	case h.Name == r.Name && h.Size == r.Size && h.ModTime.Equal(r.ModTime):
		return r.Offset
	}
	return 0
}

// from leaves out of a file's data what is before an offset.
func from(data []extent, offset int64) (rest []extent) {
	for _, e := range data {
		if end := e.at + e.size; end > offset {
			at := max(e.at, offset)
			rest = append(rest, extent{at, end - at})
		}
	}
	return rest
}
