// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// socketStates are the kernel's, by number.
func socketStates() []string {
	return []string{"", "ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "UNCONN",
		"CLOSE-WAIT", "LAST-ACK", "LISTEN", "CLOSING", "NEW-SYN-RECV"}
}

// matcher says which sockets are wanted.
type matcher struct {
	states map[string]bool // nil for any
	expr   func(socket) bool
}

func (m matcher) has(s socket) bool {
	return (m.states == nil || m.states[s.state]) && (m.expr == nil || m.expr(s))
}

// socketFilter reads what follows ss's flags: state and exclude, then an expression, for example
// "state established ( sport = :80 or dport = :80 )".
func socketFilter(args []string) (m matcher, err error) {
	var words []string
	for _, a := range args { // quoted expressions are words too
		words = append(words, strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(a))...)
	}
	for len(words) > 0 && (words[0] == "state" || words[0] == "exclude") {
		if len(words) < 2 {
			return m, applet.Usage("%s needs the name of a state", words[0])
		}
		list, err := stateNamed(words[1])
		if err != nil {
			return m, err
		}
		if m.states == nil {
			m.states = map[string]bool{}
			for _, s := range socketStates() {
				m.states[s] = words[0] == "exclude"
			}
		}
		for _, s := range list {
			m.states[s] = words[0] == "state"
		}
		words = words[2:]
	}
	if len(words) == 0 {
		return m, nil
	}
	p := &filterParser{words}
	if m.expr, err = p.either(); err == nil && len(p.words) > 0 {
		err = applet.Usage("the filter ends before %q", p.words[0])
	}
	return m, err
}

// stateNamed lists the states of a name, which may be one for many.
func stateNamed(name string) ([]string, error) {
	all := socketStates()[1:]
	but := func(out ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(out, s) })
	}
	switch word := strings.ToUpper(name); word {
	case "ALL":
		return all, nil
	case "CONNECTED":
		return but("LISTEN", "UNCONN"), nil
	case "SYNCHRONIZED":
		return but("LISTEN", "UNCONN", "SYN-SENT"), nil
	case "BUCKET":
		return []string{"SYN-RECV", "NEW-SYN-RECV", "TIME-WAIT"}, nil
	case "BIG":
		return but("SYN-RECV", "NEW-SYN-RECV", "TIME-WAIT"), nil
	case "ESTABLISHED":
		return []string{"ESTAB"}, nil
	case "LISTENING":
		return []string{"LISTEN"}, nil
	case "CLOSED", "UNCONNECTED", "CLOSE":
		return []string{"UNCONN"}, nil
	default:
		if slices.Contains(all, word) {
			return []string{word}, nil
		}
	}
	return nil,
		applet.Usage("state %q is not known: established, listening, time-wait, close-wait, syn-sent, syn-recv, fin-wait-1, fin-wait-2, last-ack, closing, closed, connected and all are", name)
}

// filterParser reads an expression, word by word.
type filterParser struct{ words []string }

func (p *filterParser) take(words ...string) bool {
	if len(p.words) > 0 && slices.Contains(words, p.words[0]) {
		p.words = p.words[1:]
		return true
	}
	return false
}

func (p *filterParser) either() (func(socket) bool, error) {
	a, err := p.both()
	for err == nil && p.take("or", "||", "|") {
		var b func(socket) bool
		first := a
		if b, err = p.both(); err == nil {
			a = func(s socket) bool { return first(s) || b(s) }
		}
	}
	return a, err
}

func (p *filterParser) both() (func(socket) bool, error) {
	a, err := p.one()
	for err == nil && len(p.words) > 0 && p.words[0] != ")" && !slices.Contains([]string{"or", "||", "|"}, p.words[0]) {
		p.take("and", "&&", "&")
		var b func(socket) bool
		first := a
		if b, err = p.one(); err == nil {
			a = func(s socket) bool { return first(s) && b(s) }
		}
	}
	return a, err
}

func (p *filterParser) one() (func(socket) bool, error) {
	switch {
	case len(p.words) == 0:
		return nil, applet.Usage("the filter ends too early")
	case p.take("not", "!"):
		f, err := p.one()
		return func(s socket) bool { return !f(s) }, err
	case p.take("("):
		f, err := p.either()
		if err == nil && !p.take(")") {
			err = applet.Usage("a ) is missing in the filter")
		}
		return f, err
	}
	what := p.words[0]
	p.words = p.words[1:]
	op := "="
	if len(p.words) > 0 {
		if word, ok := map[string]string{"=": "=", "==": "=", "eq": "=", "!=": "!", "ne": "!", "neq": "!", ">": ">",
			"gt": ">", "<": "<", "lt": "<", ">=": "g", "ge": "g", "geq": "g", "<=": "l", "le": "l",
			"leq": "l"}[p.words[0]]; ok {
			op, p.words = word, p.words[1:]
		}
	}
	if len(p.words) == 0 {
		return nil, applet.Usage("%s needs a value", what)
	}
	value := p.words[0]
	p.words = p.words[1:]
	switch what {
	case "sport", "dport":
		return portFilter(what == "sport", op, value)
	case "src", "dst":
		return addressFilter(what == "src", op, value)
	}
	return nil, applet.Usage("filter %q is not known: sport, dport, src and dst are, for example dport = :443", what)
}

func (s socket) side(local bool) netip.AddrPort {
	if local {
		return s.from
	}
	return s.to
}

func portFilter(local bool, op, value string) (func(socket) bool, error) {
	n, err := strconv.ParseUint(value[strings.LastIndexByte(value, ':')+1:], 10, 16)
	if err != nil {
		return nil, applet.Usage("%q is not a port, for example :443", value)
	}
	want := uint16(n)
	return func(s socket) bool {
		got := s.side(local)
		if !got.IsValid() {
			return false
		}
		switch op {
		case "!":
			return got.Port() != want
		case ">":
			return got.Port() > want
		case "<":
			return got.Port() < want
		case "g":
			return got.Port() >= want
		case "l":
			return got.Port() <= want
		}
		return got.Port() == want
	}, nil
}

// addressFilter takes an address, a network, or either with a port.
func addressFilter(local bool, op, value string) (func(socket) bool, error) {
	var net netip.Prefix
	port := uint16(0)
	at, err := netip.ParseAddrPort(value)
	if err == nil {
		net, port = netip.PrefixFrom(at.Addr(), at.Addr().BitLen()), at.Port()
	} else if ip, e := netip.ParseAddr(strings.Trim(value, "[]")); e == nil {
		net, err = netip.PrefixFrom(ip, ip.BitLen()), nil
	} else {
		net, err = netip.ParsePrefix(value)
	}
	if err != nil || op != "=" && op != "!" {
		return nil, applet.Usage("%q is not an address, for example 10.0.0.0/8 or 10.1.2.3:80", value)
	}
	return func(s socket) bool {
		got := s.side(local)
		return got.IsValid() && (net.Contains(got.Addr().Unmap()) && (port == 0 || port == got.Port())) == (op == "=")
	}, nil
}

// countSockets is ss -s.
func countSockets(c *applet.Call) error {
	stat, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return err
	}
	facts := map[string]string{}
	for line := range strings.Lines(string(stat)) {
		f := strings.Fields(line)
		for i := 1; i+1 < len(f); i += 2 {
			facts[f[0]+f[i]] = f[i+1]
		}
	}
	states, tcp, tcp6 := map[string]int{}, inet("tcp", "tcp"), inet("tcp", "tcp6")
	for _, s := range append(slices.Clone(tcp), tcp6...) {
		states[s.state]++
	}
	c.Printf("Total: %s\nTCP:   %d (estab %d, listen %d, close-wait %d, timewait %s, orphaned %s)\n\n",
		facts["sockets:used"], len(tcp)+len(tcp6), states["ESTAB"], states["LISTEN"], states["CLOSE-WAIT"],
		facts["TCP:tw"], facts["TCP:orphan"])
	c.Printf("%-9s %-5s %-5s %s\n", "Transport", "Total", "IP", "IPv6")
	for _, kind := range []string{"raw", "udp", "tcp"} {
		four, six := len(inet(kind, kind)), len(inet(kind, kind+"6"))
		c.Println(fmt.Sprintf("%-9s %-5d %-5d %d", strings.ToUpper(kind), four+six, four, six))
	}
	c.Printf("%-9s %d\n", "unix", len(unixSockets()))
	return nil
}
