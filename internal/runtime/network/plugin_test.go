// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// plugin is the built binary.
type plugin struct{ path string }

func buildPlugin(t testing.TB) plugin {
	t.Helper()
	p := plugin{filepath.Join(t.TempDir(), PluginType)}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", p.path, "github.com/wherryproject/wherry/cmd/wherry-cni")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the plug-in: %v\n%s", err, out)
	}
	return p
}

// run does what a runtime does: the configuration of conf_dir, one plug-in of it, with its name and version, and the
// capability arguments.
func (p plugin) run(t testing.TB, command string, c Config, r Request, extra map[string]any) (out map[string]any, took time.Duration, err error) {
	t.Helper()
	var list struct {
		CNIVersion, Name string
		Plugins          []map[string]any
	}
	if err := json.Unmarshal(ConfList(c), &list); err != nil {
		t.Fatal(err)
	}
	in := list.Plugins[0]
	in["cniVersion"], in["name"] = list.CNIVersion, list.Name
	if len(r.Ports) > 0 {
		in["runtimeConfig"] = map[string]any{"portMappings": r.Ports}
	}
	for k, v := range extra {
		in[k] = v
	}
	stdin, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(p.path)
	cmd.Env = []string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + r.ContainerID, "CNI_IFNAME=" + r.IfName, "CNI_NETNS=" + r.Netns,
		"CNI_PATH=" + filepath.Dir(p.path), "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAME=web",
	}
	cmd.Stdin = bytes.NewReader(stdin)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	start := time.Now()
	err = cmd.Run()
	took = time.Since(start)
	if stdout.Len() > 0 {
		if jerr := json.Unmarshal(stdout.Bytes(), &out); jerr != nil {
			t.Fatalf("%s printed %q: %v", command, stdout.String(), jerr)
		}
	}
	return out, took, err
}

func TestPlugin(t *testing.T) {
	needRoot(t)
	bin := buildPlugin(t)
	c := host(t, "wt-plugin", "10.201.20.0/24", "fd00:201:20::/64")
	s := newSandbox(t)
	r := Request{Attachment{"abc", "eth0"}, s.path, []PortMapping{{HostPort: 18300, ContainerPort: 80, Protocol: "tcp"}}}
	ok := func(command string, r Request, extra map[string]any) map[string]any {
		t.Helper()
		out, _, err := bin.run(t, command, c, r, extra)
		if err != nil {
			t.Fatalf("%s: %v: %v", command, err, out)
		}
		return out
	}
	if v := ok("VERSION", r, nil)["supportedVersions"]; fmt.Sprint(v) != "[1.0.0 1.1.0]" {
		t.Errorf("VERSION says %v", v)
	}
	ok("STATUS", r, map[string]any{"cniVersion": "1.1.0"})
	res := ok("ADD", r, nil)
	want := `[{"address":"10.201.20.2/24","gateway":"10.201.20.1","interface":2},{"address":"fd00:201:20::2/64","gateway":"fd00:201:20::1","interface":2}]`
	if got, _ := json.Marshal(res["ips"]); string(got) != want {
		t.Errorf("ips %s,\nwant %s", got, want)
	}
	if got, _ := json.Marshal(res["routes"]); string(got) != `[{"dst":"0.0.0.0/0","gw":"10.201.20.1"},{"dst":"::/0","gw":"fd00:201:20::1"}]` {
		t.Errorf("routes %s", got)
	}
	if res["cniVersion"] != "1.0.0" {
		t.Errorf("result of version %v", res["cniVersion"])
	}
	iface := res["interfaces"].([]any)[2].(map[string]any)
	if iface["name"] != "eth0" || iface["sandbox"] != s.path || !strings.HasPrefix(iface["mac"].(string), "0a:58:") {
		t.Errorf("interface %v", iface)
	}
	s.listen("tcp", "web", 80)
	got, err := call("tcp", "127.0.0.1:18300")
	wantAnswer(t, got, err, "web 10.201.20.1")
	ok("CHECK", r, map[string]any{"prevResult": res})
	ok("GC", Request{}, map[string]any{"cniVersion": "1.1.0", "cni.dev/valid-attachments": []Attachment{r.Attachment}})
	ok("CHECK", r, map[string]any{"prevResult": res})

	clash := Request{Attachment{"other", "eth0"}, newSandbox(t).path, r.Ports}
	out, _, err := bin.run(t, "ADD", c, clash, nil)
	if err == nil || out["code"] != float64(codePortConflict) || !strings.Contains(fmt.Sprint(out["msg"]), "host port is taken: 18300/tcp") {
		t.Errorf("conflict: %v, %v", err, out)
	}
	ok("DEL", r, nil)
	ok("DEL", Request{Attachment: r.Attachment}, nil) // no namespace, as after a reboot
	wantNothingLeft(t, c)

	gone := c
	gone.Bridge = "wt-nobridge"
	out, _, err = bin.run(t, "STATUS", gone, r, map[string]any{"cniVersion": "1.1.0"})
	if err == nil || out["code"] != float64(50) {
		t.Errorf("STATUS without a bridge: %v, %v", err, out)
	}
	out, _, err = bin.run(t, "ADD", c, r, map[string]any{"cidrs": []string{"10.1.2.3/24"}})
	if err == nil || out["code"] != float64(7) || !strings.Contains(fmt.Sprint(out["msg"]), "did you mean 10.1.2.0/24") {
		t.Errorf("bad configuration: %v, %v", err, out)
	}
}

func TestConfList(t *testing.T) {
	c := Config{Bridge: "wherry0", CIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("fd00::/64")}, StateDir: "/var/lib/wherry/network"}
	want := `{
  "cniVersion": "1.0.0",
  "name": "wherry0",
  "plugins": [
    {
      "type": "wherry-cni",
      "bridge": "wherry0",
      "cidrs": [
        "10.1.2.0/24",
        "fd00::/64"
      ],
      "stateDir": "/var/lib/wherry/network",
      "capabilities": {
        "portMappings": true
      }
    }
  ]
}
`
	if got := string(ConfList(c)); got != want {
		t.Errorf("got %s", got)
	}
}

// BenchmarkPlugin measures the plug-in as the runtime sees it: one process each for ADD and DEL. Medians are reported, as
// the mean follows whatever else the machine does.
func BenchmarkPlugin(b *testing.B) {
	needRoot(b)
	bin := buildPlugin(b)
	c := host(b, "wt-bench", "10.201.21.0/24")
	for _, variant := range []struct {
		name  string
		ports []PortMapping
	}{{"plain", nil}, {"hostport", []PortMapping{{HostPort: 18310, ContainerPort: 80}}}} {
		b.Run(variant.name, func(b *testing.B) {
			took := map[string][]time.Duration{}
			for b.Loop() {
				b.StopTimer()
				r := Request{Attachment{"bench", "eth0"}, newSandbox(b).path, variant.ports}
				b.StartTimer()
				for _, command := range []string{"VERSION", "ADD", "DEL"} {
					out, d, err := bin.run(b, command, c, r, nil)
					if err != nil {
						b.Fatalf("%s: %v: %v", command, err, out)
					}
					took[command] = append(took[command], d)
				}
			}
			for command, all := range took {
				slices.Sort(all)
				b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms/"+command)
			}
		})
	}
}

// RS-07: what containerd was told of the network can be read back.
func TestParseConfList(t *testing.T) {
	c := Config{Bridge: "wherry0", CIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("fd00::/64")}, StateDir: "/var/lib/wherry/network"}
	if back, err := ParseConfList(ConfList(c)); err != nil || fmt.Sprint(back) != fmt.Sprint(c) {
		t.Errorf("read back: %v, %v; want %v", back, err, c)
	}
	for _, bad := range []string{"", "{}", `{"plugins":[{}]}`, `{"plugins":[{},{}]}`} {
		if c, err := ParseConfList([]byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, c)
		}
	}
}
