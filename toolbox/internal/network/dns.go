// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// resolvConf is what /etc/resolv.conf says.
type resolvConf struct {
	servers, search []string
	dots            int
}

func readResolvConf() resolvConf {
	r := resolvConf{dots: 1}
	text, _ := os.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "nameserver":
			r.servers = append(r.servers, f[1])
		case "search", "domain":
			r.search = f[1:]
		case "options":
			for _, o := range f[1:] {
				_, _ = fmt.Sscanf(o, "ndots:%d", &r.dots)
			}
		}
	}
	return r
}

// names lists what to ask for, in order, when somebody names a machine.
func (r resolvConf) names(name string) (out []string) {
	if strings.HasSuffix(name, ".") {
		return []string{name}
	}
	for _, s := range r.search {
		out = append(out, name+"."+strings.Trim(s, ".")+".")
	}
	if strings.Count(name, ".") >= r.dots {
		return append([]string{name + "."}, out...)
	}
	return append(out, name+".")
}

func types() map[string]dnsmessage.Type {
	return map[string]dnsmessage.Type{"A": dnsmessage.TypeA, "AAAA": dnsmessage.TypeAAAA, "CNAME": dnsmessage.TypeCNAME,
		"MX": dnsmessage.TypeMX, "NS": dnsmessage.TypeNS, "PTR": dnsmessage.TypePTR, "SOA": dnsmessage.TypeSOA,
		"SRV": dnsmessage.TypeSRV, "TXT": dnsmessage.TypeTXT, "ANY": dnsmessage.TypeALL}
}

// ask asks one server one question, by UDP and, when the answer was cut, by TCP.
func ask(server, name string, kind dnsmessage.Type, tcp bool) (*dnsmessage.Message, error) {
	n, err := dnsmessage.NewName(name)
	if err != nil {
		return nil, fmt.Errorf("name %q: %w", name, err)
	}
	q := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: uint16(rand.Uint32()), RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: kind, Class: dnsmessage.ClassINET}},
	}
	data, err := q.Pack()
	if err != nil {
		return nil, err
	}
	if _, _, err := net.SplitHostPort(server); err != nil {
		server = net.JoinHostPort(server, "53")
	}
	network := "udp"
	if tcp {
		network = "tcp"
	}
	conn, err := net.DialTimeout(network, server, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	answer, err := exchange(conn, data, tcp)
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", server, err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		return nil, fmt.Errorf("server %s: %w", server, err)
	}
	if m.ID != q.ID {
		return nil, fmt.Errorf("server %s: the answer is to another question", server)
	}
	if m.Truncated && !tcp {
		return ask(server, name, kind, true)
	}
	return &m, nil
}

func exchange(conn net.Conn, data []byte, tcp bool) ([]byte, error) {
	if tcp {
		data = append(binary.BigEndian.AppendUint16(nil, uint16(len(data))), data...)
	}
	if _, err := conn.Write(data); err != nil {
		return nil, err
	}
	buf := make([]byte, 65535)
	if !tcp {
		n, err := conn.Read(buf)
		return buf[:n], err
	}
	if _, err := io.ReadFull(conn, buf[:2]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint16(buf)
	_, err := io.ReadFull(conn, buf[:n])
	return buf[:n], err
}

// value words what a record says.
func value(r dnsmessage.ResourceBody) string {
	switch b := r.(type) {
	case *dnsmessage.AResource:
		return netip.AddrFrom4(b.A).String()
	case *dnsmessage.AAAAResource:
		return netip.AddrFrom16(b.AAAA).String()
	case *dnsmessage.CNAMEResource:
		return b.CNAME.String()
	case *dnsmessage.NSResource:
		return b.NS.String()
	case *dnsmessage.PTRResource:
		return b.PTR.String()
	case *dnsmessage.MXResource:
		return fmt.Sprintf("%d %s", b.Pref, b.MX)
	case *dnsmessage.SRVResource:
		return fmt.Sprintf("%d %d %d %s", b.Priority, b.Weight, b.Port, b.Target)
	case *dnsmessage.TXTResource:
		return `"` + strings.Join(b.TXT, `" "`) + `"`
	case *dnsmessage.SOAResource:
		return fmt.Sprintf("%s %s %d %d %d %d %d", b.NS, b.MBox, b.Serial, b.Refresh, b.Retry, b.Expire, b.MinTTL)
	}
	return fmt.Sprintf("%v", r)
}

// reverse is the name under which an address' name is found.
func reverse(ip netip.Addr) string {
	var b strings.Builder
	raw := ip.AsSlice()
	for i := len(raw) - 1; i >= 0; i-- {
		if ip.Is4() {
			fmt.Fprintf(&b, "%d.", raw[i])
		} else {
			fmt.Fprintf(&b, "%x.%x.", raw[i]&15, raw[i]>>4)
		}
	}
	if ip.Is4() {
		return b.String() + "in-addr.arpa."
	}
	return b.String() + "ip6.arpa."
}

func nslookup(c *applet.Call) error {
	kind := c.String("t,type", "TYPE", "", "what to ask for: A, AAAA, CNAME, MX, NS, PTR, SOA, SRV, TXT")
	for i, a := range c.Args {
		for _, prefix := range []string{"-type=", "-query=", "-q="} {
			if v, ok := strings.CutPrefix(a, prefix); ok {
				c.Args[i] = "--type=" + v
			}
		}
	}
	if err := c.Parse(1, 2); err != nil {
		return err
	}
	conf := readResolvConf()
	if len(c.Args) == 2 {
		conf.servers = []string{c.Args[1]}
	}
	if len(conf.servers) == 0 {
		return errors.New("/etc/resolv.conf names no server: give one as the second argument")
	}
	server := conf.servers[0]
	kinds := []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA}
	names := conf.names(c.Args[0])
	if *kind != "" {
		t, ok := types()[strings.ToUpper(*kind)]
		if !ok {
			return applet.Usage("type %q is not known", *kind)
		}
		kinds = []dnsmessage.Type{t}
	} else if ip, err := netip.ParseAddr(c.Args[0]); err == nil {
		names, kinds = []string{reverse(ip)}, []dnsmessage.Type{dnsmessage.TypePTR}
	}
	c.Printf("Server:\t\t%s\n\n", server)
	var last error
	for _, name := range names {
		hit := false
		for _, k := range kinds {
			m, err := ask(server, name, k, false)
			if err != nil {
				return err
			}
			if m.RCode != dnsmessage.RCodeSuccess {
				last = fmt.Errorf("%s: %s", strings.TrimSuffix(c.Args[0], "."), rcode(m.RCode))
				if m.RCode == dnsmessage.RCodeNameError {
					break
				}
			}
			hit = hit || len(m.Answers) > 0
			printAnswers(c, m.Answers)
		}
		if hit {
			return nil
		}
	}
	if last == nil {
		last = fmt.Errorf("%s: the name is there and has no such record", c.Args[0])
	}
	return last
}

func printAnswers(c *applet.Call, all []dnsmessage.Resource) {
	for _, a := range all {
		switch a.Header.Type {
		case dnsmessage.TypeA, dnsmessage.TypeAAAA:
			c.Printf("Name:\t%s\nAddress: %s\n", a.Header.Name, value(a.Body))
		default:
			c.Printf("%s\t%s = %s\n", a.Header.Name, strings.TrimPrefix(a.Header.Type.String(), "Type"), value(a.Body))
		}
	}
}

func rcode(r dnsmessage.RCode) string {
	if word, ok := map[dnsmessage.RCode]string{dnsmessage.RCodeNameError: "NXDOMAIN: there is no such name",
		dnsmessage.RCodeServerFailure: "SERVFAIL: the server failed",
		dnsmessage.RCodeRefused:       "REFUSED: the server does not answer us",
		dnsmessage.RCodeFormatError:   "FORMERR"}[r]; ok {
		return word
	}
	return r.String()
}

// digging is one run of dig.
type digging struct {
	*applet.Call
	conf               resolvConf
	short, tcp, search bool
	name               string
	kind               dnsmessage.Type
}

func dig(c *applet.Call) error {
	d := &digging{Call: c, conf: readResolvConf()}
	d.pluses()
	if err := d.parse(); err != nil {
		return err
	}
	if len(d.conf.servers) == 0 {
		return errors.New("/etc/resolv.conf names no server: give one as @SERVER")
	}
	list := []string{strings.TrimSuffix(d.name, ".") + "."}
	if d.search {
		list = d.conf.names(d.name)
	}
	start := time.Now()
	var m *dnsmessage.Message
	for _, n := range list {
		var err error
		if m, err = ask(d.conf.servers[0], n, d.kind, d.tcp); err != nil {
			return applet.Fail(9, "%w", err)
		}
		if len(m.Answers) > 0 {
			break
		}
	}
	d.print(m, time.Since(start))
	return nil
}

// pluses takes the words that begin with + or @ out of the arguments.
func (d *digging) pluses() {
	var rest []string
	for _, a := range d.Args {
		switch {
		case a == "+short":
			d.short = true
		case a == "+tcp":
			d.tcp = true
		case a == "+search":
			d.search = true
		case strings.HasPrefix(a, "+"):
		case strings.HasPrefix(a, "@"):
			d.conf.servers = []string{a[1:]}
		default:
			rest = append(rest, a)
		}
	}
	d.Args = rest
}

// parse reads what is asked for: words in any order, of which one is a type if it is the name of one.
func (d *digging) parse() error {
	address := d.String("x", "ADDRESS", "", "ask for the name of an address")
	kind := d.String("t", "TYPE", "A", "what to ask for")
	if err := d.Parse(0, 3); err != nil {
		return err
	}
	var names []string
	for _, a := range d.Args {
		if _, ok := types()[strings.ToUpper(a)]; ok {
			*kind = a
		} else if strings.ToUpper(a) != "IN" {
			names = append(names, a)
		}
	}
	var ok bool
	if d.kind, ok = types()[strings.ToUpper(*kind)]; !ok {
		return applet.Usage("type %q is not known", *kind)
	}
	if *address != "" {
		ip, err := netip.ParseAddr(*address)
		if err != nil {
			return applet.Usage("%v", err)
		}
		names, d.kind = []string{reverse(ip)}, dnsmessage.TypePTR
	}
	if len(names) != 1 {
		return applet.Usage("expected one name")
	}
	d.name = names[0]
	return nil
}

func (d *digging) print(m *dnsmessage.Message, took time.Duration) {
	if d.short {
		for _, a := range m.Answers {
			d.Println(value(a.Body))
		}
		return
	}
	status := strings.ToUpper(strings.TrimPrefix(m.RCode.String(), "RCode"))
	if word, _, ok := strings.Cut(rcode(m.RCode), ":"); ok {
		status = word
	}
	if m.RCode == dnsmessage.RCodeSuccess {
		status = "NOERROR"
	}
	d.Printf(";; status: %s, id: %d\n;; %d answers, %d authorities, %d additional\n\n", status, m.ID, len(m.Answers),
		len(m.Authorities), len(m.Additionals))
	for _, part := range [][]dnsmessage.Resource{m.Answers, m.Authorities, m.Additionals} {
		for _, a := range part {
			d.Printf("%s\t%d\tIN\t%s\t%s\n", a.Header.Name, a.Header.TTL,
				strings.TrimPrefix(a.Header.Type.String(), "Type"), value(a.Body))
		}
	}
	d.Printf("\n;; query time: %d ms\n;; server: %s\n", took.Milliseconds(), d.conf.servers[0])
}
