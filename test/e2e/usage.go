// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Usage is what a server holds.
type Usage struct {
	Descriptors map[string]int // by what they are
	Heap        int64          // bytes of live objects, after a collection
}

// Count is the number of descriptors.
func (f Usage) Count() (n int) {
	for _, c := range f.Descriptors {
		n += c
	}
	return n
}

// String lists the descriptors by what they are.
func (f Usage) String() string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(f.Descriptors)) {
		out = append(out, fmt.Sprintf("%d %s", f.Descriptors[what], what))
	}
	return fmt.Sprintf("%d descriptors (%s), heap %d MiB", f.Count(), strings.Join(out, ", "), f.Heap>>20)
}

// ids are what tells one file of a kind from another.
var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|[0-9]+`)

// Usage looks at the server, which must have been started with --profiling.
func (s *Server) Usage(ctx context.Context) (Usage, error) {
	f := Usage{Descriptors: map[string]int{}}
	sockets := socketsOf(s.PID())
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.PID()))
	if err != nil {
		return f, err
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
		f.Descriptors[kind]++
	}
	text, err := s.Client.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").Param("debug",
		"1").DoRaw(ctx)
	if err != nil {
		return f, err
	}
	_, after, _ := strings.Cut(string(text), "# HeapAlloc = ")
	number, _, _ := strings.Cut(after, "\n")
	if f.Heap, err = strconv.ParseInt(number, 10, 64); err != nil {
		return f, fmt.Errorf("the profile's HeapAlloc: %w", err)
	}
	return f, nil
}

// socketsOf says of each socket in a process' network, by its inode, what it is: its own address where that is a name
// or a port that is listened on, else its peer's.
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
