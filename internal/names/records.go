// SPDX-License-Identifier: Apache-2.0

package names

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// Records takes the answers out of a message that another resolver wrote. Of those of kinds that are not made here only
// the kind is returned.
func Records(message []byte) (records []Record, code dnsmessage.RCode, ok bool) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil {
		return nil, 0, false
	}
	if p.SkipAllQuestions() != nil {
		return nil, h.RCode, true
	}
	for {
		a, err := p.Answer()
		if err != nil { // the end, or what is no record
			return records, h.RCode, true
		}
		records = append(records, record(a))
	}
}

func record(a dnsmessage.Resource) Record {
	dotless := func(n dnsmessage.Name) string { return strings.TrimSuffix(n.String(), ".") }
	r := Record{Name: dotless(a.Header.Name), Type: a.Header.Type}
	switch body := a.Body.(type) {
	case *dnsmessage.AResource:
		r.Addr = netip.AddrFrom4(body.A)
	case *dnsmessage.AAAAResource:
		r.Addr = netip.AddrFrom16(body.AAAA)
	case *dnsmessage.CNAMEResource:
		r.Target = dotless(body.CNAME)
	case *dnsmessage.PTRResource:
		r.Target = dotless(body.PTR)
	case *dnsmessage.NSResource:
		r.Target = dotless(body.NS)
	case *dnsmessage.MXResource:
		r.Target, r.Priority = dotless(body.MX), body.Pref
	case *dnsmessage.SRVResource:
		r.Target, r.Port, r.Priority, r.Weight = dotless(body.Target), body.Port, body.Priority, body.Weight
	case *dnsmessage.TXTResource:
		r.Text = strings.Join(body.TXT, "")
	}
	return r
}

// CodeName is the name by which people know a code.
func CodeName(c dnsmessage.RCode) string {
	switch c {
	case dnsmessage.RCodeSuccess:
		return "NOERROR"
	case dnsmessage.RCodeFormatError:
		return "FORMERR"
	case dnsmessage.RCodeServerFailure:
		return "SERVFAIL"
	case dnsmessage.RCodeNameError:
		return "NXDOMAIN"
	case dnsmessage.RCodeNotImplemented:
		return "NOTIMP"
	case dnsmessage.RCodeRefused:
		return "REFUSED"
	}
	return "RCODE" + strconv.Itoa(int(c))
}

// Word is a record in short.
func (a Record) Word() string {
	switch {
	case a.Addr.IsValid():
		return a.Addr.String()
	case a.Type == dnsmessage.TypeSRV:
		return a.Target + ":" + strconv.Itoa(int(a.Port))
	case a.Type == dnsmessage.TypeCNAME:
		return "-> " + a.Target
	case a.Target != "":
		return a.Target
	case a.Text != "":
		return a.Text
	}
	return TypeName(a.Type)
}

// TypeName is the name by which people know a type of records.
func TypeName(t dnsmessage.Type) string { return strings.TrimPrefix(t.String(), "Type") }
