// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// put puts output into a ring as a pipe would give it.
func put(r *ring, s stream, text string) {
	for len(text) > 0 {
		r.drop(r.needed())
		n, _ := r.take(s, func(place [][]byte) (n int, _ error) {
			for _, p := range place {
				n += copy(p, text[n:])
			}
			return n, nil
		})
		text = text[n:]
	}
}

// kept is what a ring holds of a stream, and how much it dropped of both.
func kept(r *ring, s stream, join bool) (string, uint64) {
	var out strings.Builder
	c := r.start()
	lost := c.lost
	for buf := make([]byte, 1000); r.more(c); {
		if n, of, _ := r.next(c, buf, join); of == s {
			out.Write(buf[:n])
		}
	}
	return out.String(), lost
}

func testRing(t *testing.T, size int) (*ring, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ring")
	r, err := newRing(path, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r, path
}

// EC-16: a ring gives back what was put into it, in order, and says how much it no longer has.
func TestRing(t *testing.T) {
	r, path := testRing(t, 4*chunk)
	var want [2]strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20000 {
		s := stream(random.IntN(2))
		text := strings.Repeat(fmt.Sprintf("%d ", i), 1+random.IntN(30))
		if i%1000 == 0 {
			text = strings.Repeat(text, 2000) // more than a chunk
		}
		want[s].WriteString(text)
		put(r, s, text)
	}
	for _, how := range []string{"as it was written", "as the next process finds it", "as a reader finds it"} {
		got := r
		switch how {
		case "as the next process finds it":
			var err error
			if got, err = openRing(path); err != nil {
				t.Fatal(err)
			}
			defer got.close()
		case "as a reader finds it":
			var err error
			if got, err = readRing(path); err != nil {
				t.Fatal(err)
			}
			defer got.close()
		}
		for _, join := range []bool{false, true} {
			total := 0
			for s := range want {
				text, _ := kept(got, stream(s), join)
				if len(text) < chunk/2 || !strings.HasSuffix(want[s].String(), text) {
					t.Errorf("%s: %d bytes of %s, which are not its newest", how, len(text), stream(s))
				}
				total += len(text)
			}
			if _, lost := kept(got, stdout, join); int(lost) != want[0].Len()+want[1].Len()-total {
				t.Errorf("%s: %d bytes dropped, want %d", how, lost, want[0].Len()+want[1].Len()-total)
			}
		}
	}
}

// EC-16: a process that is killed while it reads, after the kernel gave it the bytes and before it counted them, loses none.
func TestRingKilledWhileReading(t *testing.T) {
	for _, size := range []int{ringSize, passingSize} {
		whole := int(min(chunk, size/16))
		for _, text := range []string{"", "x", "some text\n", strings.Repeat("0123456789abcdef", whole/16)} {
			for _, before := range []int{0, 3, whole - 5, 5 * whole / 2} {
				killedWhileReading(t, size, text, before)
			}
		}
	}
}

// killedWhileReading kills a process that reads text behind so many bytes of other output, in a ring that is full.
func killedWhileReading(t *testing.T, size int, text string, before int) {
	t.Helper()
	r, path := testRing(t, size)
	old := strings.Repeat("y", before)
	for range size / chunk {
		put(r, stdout, strings.Repeat("z", chunk))
	}
	put(r, stdout, old)
	r.drop(r.needed())
	func() {
		defer func() { _ = recover() }()
		_, _ = r.take(stderr, func(place [][]byte) (n int, _ error) {
			for _, p := range place {
				n += copy(p, text[n:])
			}
			panic("killed")
		})
	}()
	next, err := openRing(path)
	if err != nil {
		t.Fatal(err)
	}
	defer next.close()
	put(next, stderr, "more")
	if got, _ := kept(next, stderr, true); got != text+"more" {
		t.Errorf("%d bytes before, of %d: %d bytes of %d were found", before, size, len(got)-4, len(text))
	}
	if got, _ := kept(next, stdout, true); !strings.HasSuffix(got, old) || strings.Trim(got, "zy") != "" {
		t.Errorf("%d bytes before, of %d, were changed", before, size)
	}
}

// A file that is no ring, or whose header is damaged, is refused and not trusted.
func TestRingRefused(t *testing.T) {
	r, path := testRing(t, 4*chunk)
	put(r, stdout, "text")
	for what, damage := range map[string]func(*header){
		"the tail is beyond the head": func(h *header) { h.tail.Store(8000) },
		"another size":                func(h *header) { h.size = 7 },
		"another version":             func(h *header) { h.magic[7] = '2' },
	} {
		before := bytes.Clone(r.mem[:headerSize])
		damage(r.h)
		if got, err := openRing(path); err == nil {
			got.close()
			t.Errorf("%s: opened", what)
		}
		copy(r.mem, before)
	}
	if got, err := openRing(path); err != nil {
		t.Error(err)
	} else {
		got.close()
	}
}
