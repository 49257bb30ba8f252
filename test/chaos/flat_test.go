// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// figures are what a server holds.
type figures struct {
	descriptors map[string]int // by what they are
	heap        int64          // bytes of live objects, after a collection
}

func (f figures) count() (n int) {
	for _, c := range f.descriptors {
		n += c
	}
	return n
}

// String lists the descriptors by what they are.
func (f figures) String() string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(f.descriptors)) {
		out = append(out, fmt.Sprintf("%d %s", f.descriptors[what], what))
	}
	return fmt.Sprintf("%d descriptors (%s), heap %d MiB", f.count(), strings.Join(out, ", "), f.heap>>20)
}

// ids are what tells one file of a kind from another.
var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|[0-9]+`)

// measure looks at the server.
func (s *storm) measure() figures {
	s.t.Helper()
	f := figures{descriptors: map[string]int{}}
	sockets := socketsOf(s.PID())
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.PID()))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, link := range links {
		to, err := os.Readlink(link)
		if err != nil {
			continue // closed meanwhile
		}
		kind, id, isKind := strings.Cut(to, ":[")
		switch {
		case !isKind:
			kind = ids.ReplaceAllString(strings.TrimPrefix(to, s.DataDir), "N")
		case kind == "socket":
			kind = cmp.Or(sockets[strings.TrimSuffix(id, "]")], "socket")
		}
		f.descriptors[kind]++
	}
	text, err := s.Client.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").Param("debug", "1").DoRaw(s.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "# HeapAlloc = ")
	number, _, _ := strings.Cut(after, "\n")
	if f.heap, err = strconv.ParseInt(number, 10, 64); err != nil {
		s.t.Fatalf("the profile's HeapAlloc: %v", err)
	}
	return f
}

// socketsOf says of each socket in a process' network, by its inode, what it is: its own address where that is a name or a port that is
// listened on, else its peer's.
func socketsOf(pid int) map[string]string {
	out := map[string]string{}
	listens := map[string]bool{}
	var tcp [][]string
	for _, table := range []string{"tcp", "tcp6", "unix"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table)) // gone: nothing is known
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			switch {
			case table == "unix" && len(f) == 8:
				out[f[6]] = "unix " + ids.ReplaceAllString(filepath.Base(f[7]), "N")
			case table == "unix" && len(f) == 7:
				out[f[6]] = "unix"
			case table != "unix" && len(f) > 9 && f[3] == "0A":
				listens[port(f[1])] = true
				tcp = append(tcp, f)
			case table != "unix" && len(f) > 9:
				tcp = append(tcp, f)
			}
		}
	}
	for _, f := range tcp {
		switch {
		case f[3] == "0A":
			out[f[9]] = "listening"
		case listens[port(f[1])]:
			out[f[9]] = "tcp accepted"
		default:
			out[f[9]] = "tcp to :" + port(f[2])
		}
	}
	return out
}

// port is that of an address in /proc/net/tcp.
func port(address string) string {
	n, _ := strconv.ParseUint(address[strings.LastIndexByte(address, ':')+1:], 16, 16) // the kernel writes it
	return strconv.FormatUint(n, 10)
}

// spareDescriptors is how many more a server may have than a fresh one: of clients that have just come. The connections of its own parts,
// two descriptors each, are given back after 15 s of idling, which is why flat waits at all: a storm leaves some thirty of them.
const spareDescriptors = 12

// patience is how long a server may take to give all back.
const patience = 60 * time.Second

// spareHeap is how many times a fresh server's live memory it may have: caches of images and objects are filled by then.
const spareHeap = 3

// flat holds the server's descriptors and memory against those of a fresh one (RS-01).
func (s *storm) flat() {
	now := s.measure()
	s.t.Logf("at first: %v", now)
	for until := time.Now().Add(patience); time.Now().Before(until); { // nothing tells
		if now.count() <= s.fresh.count()+spareDescriptors && now.heap <= spareHeap*s.fresh.heap {
			break
		}
		time.Sleep(time.Second)
		now = s.measure()
	}
	s.t.Logf("fresh: %v", s.fresh)
	s.t.Logf("after: %v", now)
	if now.count() > s.fresh.count()+spareDescriptors || now.heap > spareHeap*s.fresh.heap {
		s.t.Error("RS-01 the server holds more without any pod than a fresh one")
	}
}
