// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"github.com/wherryproject/wherry/internal/names"
)

func example() Picture {
	zone := names.Zone{Domain: "cluster.local", Networks: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}
	p := Picture{Settings: Settings{Zone: zone, Service: netip.MustParseAddr("10.96.0.10"), ResolvConf: "/etc/resolv.conf", NoBook: true},
		Address: netip.MustParseAddrPort("10.88.0.1:5353"), World: names.New(zone)}
	ip := []netip.Addr{netip.MustParseAddr("10.96.0.1")}
	p.World.Apply(names.Change{Service: &names.Service{Namespace: "a", Name: "s", IPs: ip, Ports: []names.Port{{Name: "p", Protocol: "tcp", Number: 1}}}})
	p.World.Apply(names.Change{Slice: &names.Slice{Namespace: "a", Name: "s-1", Service: "s", Endpoints: []names.Endpoint{{Hostname: "h", Addresses: ip}}}})
	p.World.Apply(names.Change{Pod: &names.Pod{Namespace: "a", Name: "p", UID: "u", IPs: ip}})
	return p
}

// WL-12 (P): what a resolver keeps in its file is what it reads there; a file that was cut off is none.
func TestPicture(t *testing.T) {
	p := example()
	var b bytes.Buffer
	if err := WritePicture(&b, p); err != nil {
		t.Fatal(err)
	}
	got, err := ReadPicture(bytes.NewReader(b.Bytes()))
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ReadPicture(bytes.NewReader(bytes.TrimSuffix(b.Bytes(), []byte("{\"end\":true}\n")))); !errors.Is(err, ErrNoPicture) {
		t.Error(err)
	}
	if _, err := ReadPicture(bytes.NewReader(b.Bytes()[:b.Len()-3])); err == nil {
		t.Error("half a line was read")
	}
}

// FuzzPicture (WL-12): whatever the file holds, it is refused, or read as a world that is written and read again alike.
func FuzzPicture(f *testing.F) {
	var b bytes.Buffer
	if err := WritePicture(&b, example()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("{\"begin\":true}\n{\"change\":{}}\n{\"end\":true}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ReadPicture(bytes.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WritePicture(&b, p); err != nil {
			t.Fatal(err)
		}
		again, err := ReadPicture(&b)
		if err != nil || len(again.World.All()) != len(p.World.All()) {
			t.Errorf("%+v, %v", again, err)
		}
	})
}
