// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func networks(text string) (out []netip.Prefix) {
	for _, t := range strings.Fields(text) {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

func node(name, has, request string) Node {
	return Node{Name: name, Networks: networks(has), Requested: networks(request)}
}

// WL-20: which node gets which network, and what it is told if it gets none or another.
func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		what  string
		facts Facts
		want  string
	}{
		{"all have one", Facts{Ranges: networks("10.9.0.0/16"), Nodes: []Node{node("a", "10.9.0.0/24", "")}}, ""},
		{"the first free ones, by name", Facts{Ranges: networks("10.9.0.0/16"),
			Nodes: []Node{node("c", "", ""), node("b", "", ""), node("a", "10.9.1.0/24", "")}},
			"b 10.9.0.0/24; c 10.9.2.0/24"},
		{"of each family", Facts{Ranges: networks("10.9.0.0/16 fd00:9::/56"),
			Nodes: []Node{node("a", "", ""), node("b", "", "")}},
			"a 10.9.0.0/24,fd00:9::/64; b 10.9.1.0/24,fd00:9:0:1::/64"},
		{"not where services, this machine or its node are",
			Facts{Ranges: networks("10.9.0.0/16"), Never: networks("10.9.0.0/24"), Avoid: networks("10.9.1.128/25"),
				Own: "own", OwnNetworks: networks("10.9.2.0/24"), Nodes: []Node{node("a", "", "")}}, "a 10.9.3.0/24"},
		{"the machine's own node gets its own", Facts{Ranges: networks("10.9.0.0/16"), Own: "own",
			OwnNetworks: networks("10.9.2.0/24"), Nodes: []Node{node("a", "", ""), node("own", "", "10.9.2.0/24")}},
			"own 10.9.2.0/24; a 10.9.0.0/24"},
		{"requests first, wherever they are", Facts{Ranges: networks("10.9.0.0/16"),
			Nodes: []Node{node("a", "", ""), node("b", "", "10.9.0.0/24"), node("c", "", "172.20.4.0/24")}},
			"b 10.9.0.0/24; c 172.20.4.0/24; a 10.9.1.0/24"},
		{"a request on a network that this machine routes elsewhere",
			Facts{Ranges: networks("10.9.0.0/16"), Avoid: networks("10.9.7.0/24"),
				Nodes: []Node{node("a", "", "10.9.7.0/24")}}, "a 10.9.7.0/24"},
		{"a request that another has", Facts{Ranges: networks("10.9.0.0/16"),
			Nodes: []Node{node("a", "10.9.0.0/24", ""), node("b", "", "10.9.0.128/25")}},
			"b 10.9.1.0/24 (10.9.0.128/25 overlaps with 10.9.0.0/24, which node a has)"},
		{"a request for what is this machine's", Facts{Ranges: networks("10.9.0.0/16"), Own: "own",
			OwnNetworks: networks("10.9.0.0/24"), Nodes: []Node{node("b", "", "10.9.0.0/24")}},
			"b 10.9.1.0/24 (10.9.0.0/24 overlaps with 10.9.0.0/24, which node own has)"},
		{"a request for services' addresses", Facts{Ranges: networks("10.9.0.0/16"), Never: networks("10.96.0.0/12"),
			Nodes: []Node{node("b", "", "10.100.0.0/24")}},
			"b 10.9.0.0/24 (10.100.0.0/24 overlaps with the network of services, 10.96.0.0/12)"},
		{"two with one request", Facts{Ranges: networks("10.9.0.0/16"),
			Nodes: []Node{node("b", "", "10.9.5.0/24"), node("a", "", "10.9.5.0/24")}},
			"a 10.9.5.0/24; b 10.9.0.0/24 (10.9.5.0/24 overlaps with 10.9.5.0/24, which node a has)"},
		{"a request that makes no sense", Facts{Ranges: networks("10.9.0.0/16"),
			Nodes: []Node{{Name: "a", Bad: errors.New("nonsense")}}}, "a 10.9.0.0/24 (nonsense)"},
		{"no room", Facts{Ranges: networks("10.9.0.0/23"), Nodes: []Node{node("a", "10.9.0.0/24", ""),
			node("b", "10.9.1.0/24", ""), node("c", "", "")}},
			"c : all of 10.9.0.0/23, the network of all pods, is given to nodes: delete nodes that are gone (kubectl delete node), or start the server with a larger --cluster-cidr"},
		{"nothing of one family", Facts{Ranges: networks("10.9.0.0/16 fd00:9::/64"),
			Nodes: []Node{node("a", "10.9.0.0/24 fd00:9::/64", ""), node("c", "", "")}},
			"c : all of fd00:9::/64, the network of all pods, is given to nodes: delete nodes that are gone (kubectl delete node), or start the server with a larger --cluster-cidr"},
		{"nothing to give", Facts{Nodes: []Node{node("c", "", "")}},
			"c : the server has no network to give parts of to nodes: start it with --cluster-cidr, for example 10.244.0.0/16"},
		{"at the end of all addresses", Facts{Ranges: networks("255.255.255.0/24"),
			Nodes: []Node{node("a", "255.255.255.0/24", ""), node("b", "", "")}},
			"b : all of 255.255.255.0/24, the network of all pods, is given to nodes: delete nodes that are gone (kubectl delete node), or start the server with a larger --cluster-cidr"},
	} {
		var got []string
		for _, r := range Decide(tc.facts) {
			text := r.Node.Name + " " + Join(r.Networks)
			if r.Problem != "" {
				text += ": " + r.Problem
			}
			if r.Reason != "" {
				text += " (" + r.Reason + ")"
			}
			got = append(got, text)
		}
		if g := strings.Join(got, "; "); g != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.what, g, tc.want)
		}
	}
}

// WL-20: whatever nodes request for, no two have networks that overlap, and who has one keeps it.
func TestDecideKeepsApart(t *testing.T) {
	requests := []string{"", "10.9.0.0/24", "10.9.0.0/25", "10.9.1.0/24", "10.9.0.0/23", "10.96.0.0/24"}
	for i := range len(requests) * len(requests) * len(requests) {
		f := Facts{Ranges: networks("10.9.0.0/21"), Never: networks("10.96.0.0/12"), Own: "own",
			OwnNetworks: networks("10.9.3.0/24"), Nodes: []Node{node("a", "", requests[i%6]),
				node("b", "", requests[i/6%6]), node("c", "10.9.2.0/24", requests[i/36%6])}}
		all := append(networks("10.9.3.0/24"), networks("10.9.2.0/24")...)
		for _, r := range Decide(f) {
			for _, p := range r.Networks {
				if slices.ContainsFunc(append(slices.Clone(all), f.Never...), p.Overlaps) {
					t.Fatalf("%+v: %s is given, which overlaps with one of %v", f.Nodes, p, all)
				}
			}
			all = append(all, r.Networks...)
		}
		if len(all) != 4 {
			t.Fatalf("%+v: given are %v", f.Nodes, all)
		}
	}
}

// WL-20: the range by default.
func TestAround(t *testing.T) {
	for own, want := range map[string]string{"10.77.3.0/24": "10.77.0.0/16",
		"10.77.3.0/24 fd00:1:2:3::/64": "10.77.0.0/16,fd00:1:2::/56", "10.244.0.0/16": "", "": "",
		"fd00:1::/36": "fd00:1::/32"} {
		if got := Join(Around(networks(own))); got != want {
			t.Errorf("around %s: %s, want %s", own, got, want)
		}
	}
}

// WL-20: what a node may request for.
func TestWished(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"10.9.0.0/24":              "10.9.0.0/24",
		"10.9.0.0/24, fd00:9::/64": "10.9.0.0/24,fd00:9::/64",
		"10.9.0.7/24":              "has host bits set",
		"10.9.0.0/24,10.9.1.0/24":  "of one address family",
		"ten":                      "ParsePrefix",
		"10.9.0.0/24,":             "ParsePrefix",
		"0.0.0.0/0":                "not of a size",
		"10.9.0.0/31":              "not of a size",
		"::/0":                     "not of a size",
		"127.0.0.0/24":             "not a network of ordinary addresses",
		"224.0.0.0/24":             "not a network of ordinary addresses",
		"169.254.0.0/24":           "not a network of ordinary addresses",
		"fe80::/64":                "not a network of ordinary addresses",
		"::ffff:10.9.0.0/120":      "is not written as IPv4",
	} {
		got, err := ParseRequested(text)
		if answer := Join(got) + fmt.Sprint(err); err == nil && Join(got) != want ||
			err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %s, want %s", text, answer, want)
		}
	}
}

// FuzzWished: whatever a node writes, what is read of it is usable, and written again the same.
func FuzzWished(f *testing.F) {
	for _, text := range []string{"", "10.9.0.0/24", "10.9.0.0/24,fd00:9::/64", "0.0.0.0/0", "::ffff:10.0.0.0/104",
		"x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseRequested(text)
		if err != nil {
			return
		}
		again, err := ParseRequested(Join(list))
		if err != nil || !slices.Equal(list, again) || len(list) > 2 {
			t.Errorf("%q is read as %v, and that as %v, %v", text, list, again, err)
		}
	})
}
