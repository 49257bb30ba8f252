// SPDX-License-Identifier: Apache-2.0

package networks

import (
	"strings"
	"testing"
)

// FuzzParse: a question names both ends, and a port unless it is about a service with a single one; it is refused in words,
// or answered in words (RS-07). The same end is understood with its kind and with its protocol named.
func FuzzParse(f *testing.F) {
	for _, c := range [][2]string{{"web", "db:5432"}, {"pod/web", "svc/db"}, {"a/web", "service/a/db:dns/udp"}, {"svc/x", "y:1"},
		{"10.0.0.1", "[fd00::1]:80/sctp"}, {"[fd00::1]", "fd00::1:80"}, {"", ":"}, {"x", "svc/:"}, {"x", "y:/"}, {"x", "y:80/icmp"}, {"x", "y:0"},
		{"x", "svc/"}, {"pod/", "y:1"}, {"[]", "[]:1"}, {"x", "y:99999"}, {"x", "y:80/UDP/tcp"}} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, from, to string) {
		q, err := parse(from, to)
		if err != nil {
			return
		}
		if q.from == "" || q.to == "" || q.port == "" && q.toKind != aService || q.proto.String() == "" || q.toKind != aPod && q.toKind != aService {
			t.Errorf("%q %q: %+v", from, to, q)
		}
		if _, err := judgeAll(q, found{}, "default"); err == nil && q.from != "" && strings.Trim(q.from, "0123456789abcdefABCDEF.:%") != "" {
			t.Errorf("%q %q: what is not there has an answer", from, to)
		}
		if q.port == "" || strings.ContainsAny(q.from+q.to, "[]") {
			return
		}
		kind := "pod/"
		if q.toKind == aService {
			kind = "svc/"
		}
		again, err := parse("pod/"+q.from, kind+q.to+":"+q.port+"/"+strings.ToLower(q.proto.String()))
		if err != nil || again != q {
			t.Errorf("%q %q: %+v, and then %+v, %v", from, to, q, again, err)
		}
	})
}
