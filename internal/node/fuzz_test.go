// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"strings"
	"testing"
)

// FuzzMachine: whatever the files say that tell of the machine, what is read of them is in them, fits together, and takes no more room than
// they do.
func FuzzMachine(f *testing.F) {
	for _, text := range []string{
		"cpu  10 20 30 40 50 60 70 80 0 0\ncpu0 1 2 3 4 5 6 7 8\nbtime 1790000000\n", "cpu 1 2 3 4 5 6 7\nbtime x\n", "cpu  9223372036854775807 1 1 1 1 1 1 1\nbtime -1\n",
		"cpu  922337203685477580 1 1 1 1 1 1 1\nbtime 1\n", "cpu  -1 1 1 1 1 1 1 1\nbtime 1\n",
		"MemTotal:  16000000 kB\nMemFree: 1000 kB\nMemAvailable:   5000 kB\n", "MemTotal: 18446744073709551615 kB\nMemFree: 0 kB\nMemAvailable: 1\n", "MemTotal:\nMemTotal: -1\n",
		"NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 13\"\n", "PRETTY_NAME='", "nameserver 127.0.0.53\nsearch a.example b.example\noptions edns0 trust-ad\n", "nameserver ::1\ndomain x\n# nameserver 1.1.1.1\nnameserver\n",
	} {
		f.Add(text, "nameserver 10.0.0.1\n")
	}
	f.Fuzz(func(t *testing.T, text, behind string) {
		if busy, _, ok := parseStat(text); ok && busy < 0 {
			t.Errorf("the processors have worked for %v", busy)
		}
		if m, ok := parseMeminfo(text); ok {
			if *m.AvailableBytes == 0 || *m.WorkingSetBytes > *m.WorkingSetBytes+*m.AvailableBytes || *m.UsageBytes > *m.WorkingSetBytes+*m.AvailableBytes {
				t.Errorf("available %d, used %d, working %d", *m.AvailableBytes, *m.UsageBytes, *m.WorkingSetBytes)
			}
		}
		if name := prettyName(text); name != "Linux" && !strings.Contains(text, name) || strings.Contains(name, "\n") {
			t.Errorf("the system is called %q", name)
		}
		dns := hostDNS(text, behind)
		for _, word := range slices.Concat(dns.Servers, dns.Searches, dns.Options) {
			if word == "" || len(strings.Fields(word)) != 1 || !strings.Contains(text+behind, word) {
				t.Errorf("it has %q", word)
			}
		}
	})
}
