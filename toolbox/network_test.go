// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// server is a command that runs until the test ends.
type server struct {
	cmd    *exec.Cmd
	out    bytes.Buffer // to be read when it has ended
	lines  *bufio.Reader
	port   string
	ending chan struct{}
}

// listening starts a command that says on its standard error, in a line that ends in a port, where it listens.
func listening(t *testing.T, dir, stdin string, args ...string) *server {
	t.Helper()
	s := &server{cmd: command(t, dir, args...), ending: make(chan struct{})}
	s.cmd.Stdin, s.cmd.Stdout = strings.NewReader(stdin), &s.out
	errs, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // most often it has ended
		_ = s.cmd.Wait()
	})
	s.lines = bufio.NewReader(errs)
	line, err := s.lines.ReadString('\n')
	found := regexp.MustCompile(`:(\d+)/?\n$`).FindStringSubmatch(line)
	if err != nil || found == nil {
		t.Fatalf("%q says %q, %v", args, line, err)
	}
	s.port = found[1]
	go func() {
		defer close(s.ending)
		_, _ = io.Copy(io.Discard, s.lines)
	}()
	return s
}

// ended waits for its end and returns what it printed.
func (s *server) ended(t *testing.T) string {
	t.Helper()
	<-s.ending
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	return s.out.String()
}

// says runs a line of the shell and holds what it prints against a pattern.
func says(t *testing.T, dir, line, want string, code int) {
	t.Helper()
	cmd := command(t, dir, "sh", "-c", line)
	out, _ := cmd.CombinedOutput()
	if !regexp.MustCompile(`(?s)^`+want+`$`).Match(out) || cmd.ProcessState.ExitCode() != code {
		t.Errorf("%s\n got %q, code %d\nwant %q, code %d", line, out, cmd.ProcessState.ExitCode(), want, code)
	}
}

// Files go by HTTP from httpd to wget and curl, and nothing but those of its folder.
func TestHTTP(t *testing.T) {
	dir, at := t.TempDir(), t.TempDir()
	home := filepath.Join(dir, "home")
	err := os.Mkdir(home, 0o700)
	for name, text := range map[string]string{"home/a.txt": "hello\n", "secret": "no\n"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if err := errors.Join(err, os.Symlink("../secret", filepath.Join(home, "link"))); err != nil {
		t.Fatal(err)
	}
	url := "http://127.0.0.1:" + listening(t, dir, "", "httpd", "-p", "127.0.0.1:0", "home").port
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"wget -q -O - URL/a.txt", "hello\n", 0},
		{"wget -q URL/a.txt; cat a.txt", "hello\n", 0},
		{"wget -q --spider URL/a.txt", "", 0},
		{"wget -q -O - URL/none", ".*404.*", 8},
		{"wget -q -S -O /dev/null URL/a.txt", ".*HTTP/1.1 200 OK.*", 0},
		{"curl -s URL/a.txt", "hello\n", 0},
		{"curl -s -o out -w '%{http_code} %{size_download}\\n' URL/a.txt; cat out", "200 6\nhello\n", 0},
		{"curl -sI URL/a.txt", "HTTP/1.1 200 OK\r\n.*Content-Length: 6\r\n.*", 0},
		{"curl -sf URL/none", ".*", 22},
		{"curl -s -X POST -d x -H 'A: b' -w '%{http_code}' -o /dev/null URL/a.txt", "\\d+", 0},
		{"curl -sS http://127.0.0.1:1/", "curl: .*refused.*\n", 7},
	} {
		says(t, at, strings.ReplaceAll(c.line, "URL", url), c.want, c.code)
	}
	if out, _, _ := do(t, at, "", "curl", "-s", url+"/link"); strings.Contains(out, "no\n") {
		t.Error("httpd shows what lies outside its folder")
	}
}

// nc carries bytes both ways over TCP, UDP and unix sockets, and sees what is open.
func TestNC(t *testing.T) {
	dir := t.TempDir()
	l := listening(t, dir, "from the server\n", "nc", "-l", "-v", "127.0.0.1", "0")
	says(t, dir, "echo from the client | nc 127.0.0.1 "+l.port, "from the server\n", 0)
	if got := l.ended(t); got != "from the client\n" {
		t.Errorf("the server got %q", got)
	}
	open := listening(t, dir, "", "nc", "-l", "-k", "-v", "127.0.0.1", "0")
	says(t, dir, "nc -z 127.0.0.1 "+open.port, ".*", 0)
	says(t, dir, "nc -z -w 1 127.0.0.1 1", ".*", 1)

	udp := listening(t, dir, "", "nc", "-u", "-l", "-v", "-w", "1", "127.0.0.1", "0")
	says(t, dir, "echo packet | nc -u -q 0 127.0.0.1 "+udp.port, "", 0)
	if got := udp.ended(t); got != "packet\n" {
		t.Errorf("the UDP server got %q", got)
	}
	says(t, dir, "nc x", "nc: missing host and port \\(see --help\\)\n", 2)
}

// ss and netstat show a socket that listens, ss also whose it is.
func TestSS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := regexp.QuoteMeta(l.Addr().String())
	says(t, t.TempDir(), "ss -ltn", `.*LISTEN +\d+ +\d+ `+at+` .*`, 0)
	says(t, t.TempDir(), "ss -ltnpH | grep "+l.Addr().String(), `tcp +LISTEN .*pid=`+strconv.Itoa(os.Getpid())+`,.*`, 0)
	says(t, t.TempDir(), "netstat -ltn", `.*LISTEN +\d+ +\d+ `+at+` .*`, 0)
	says(t, t.TempDir(), "ss -uln | grep -c "+l.Addr().String(), "0\n", 1)

	to, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	near := regexp.QuoteMeta(to.LocalAddr().String())
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"ss -tnH state established dport = :" + port, `tcp +ESTAB +0 +0 ` + near + ` ` + at + `\n`, 0},
		{"ss -tnH state established '( sport = :1 or dport = :" + port + " )' and dst 127.0.0.0/8", `tcp +ESTAB +0 +0 ` + near + ` .*`, 0},
		{"ss -tnH state listening sport = " + port, `tcp +LISTEN .*`, 0},
		{"ss -tnH state connected exclude established dport = :" + port, ``, 0},
		{"ss -tnHa not src 127.0.0.1 sport = :" + port, ``, 0},
		{"ss -tnHa src " + l.Addr().String() + " sport != :1 | wc -l", `[12]\n`, 0}, // the other end may not be accepted yet
		{"ss -s", `Total: \d+\nTCP: +\d+ \(estab [1-9]\d*, listen [1-9]\d*, .*\nTransport .*`, 0},
		{"ss state open", `ss: state "open" is not known: .*`, 2},
		{"ss -t sport", `ss: sport needs a value.*`, 2},
		{"ss -t '( sport = :1'", `ss: a \) is missing.*`, 2},
	} {
		says(t, t.TempDir(), c.line, c.want, c.code)
	}
}

// nsenter runs a command where another process is.
func TestNsenter(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("new namespaces need root")
	}
	apart := command(t, "/", "sh", "-c", "echo there; read x")
	apart.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS}
	in, err := apart.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := apart.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := apart.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = apart.Wait() // ends with the end of its input
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "there\n" {
		t.Fatalf("%q, %v", line, err)
	}
	pid := strconv.Itoa(apart.Process.Pid)
	says(t, "/", "nsenter -t "+pid+" -n -- ip link | grep -c '^[0-9]'", "1\n", 0) // lo alone
	says(t, "/", "nsenter -t "+pid+" -u readlink /proc/self/ns/uts; readlink /proc/"+pid+"/ns/uts", `(uts:\[\d+\])\n(uts:\[\d+\])\n`, 0)
	here, _, _ := do(t, "/", "", "readlink", "/proc/self/ns/net")
	if there, _, _ := do(t, "/", "", "nsenter", "-t", pid, "-n", "readlink", "/proc/self/ns/net"); there == here || !strings.HasPrefix(there, "net:[") {
		t.Errorf("it ran in %q; here is %q", there, here)
	}
	says(t, "/", "nsenter -t 999999999 -n true", "nsenter: .*no such.*\n", 1)
}

// A shell in another program's PID namespace takes the orphans, which that program would leave as zombies.
func TestOrphans(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("new namespaces need root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	app := &exec.Cmd{Path: self, Args: []string{careless}, Env: []string{}}
	app.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	in, err := app.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := app.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = app.Wait() // ends with the end of its input
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	at := "nsenter -t " + strconv.Itoa(app.Process.Pid) + " -p -m sh -c "
	says(t, "/", at+`'p=$(sh -c "sleep 60 >/dev/null & echo \$!"); grep "^PPid:" /proc/$p/status | cut -f2 | grep -q "^$$\$" && echo mine
		kill -9 $p; timeout 60 sh -c "while test -d /proc/$p; do :; done" && echo gone'`, "mine\ngone\n", 0)
	says(t, "/", at+`'echo $PPID; trap "echo trapped; exit 5" TERM; kill -TERM $$; :'`, "0\ntrapped\n", 5)
	says(t, "/", at+`'sh -c "sleep 0; kill -TERM $$; exec sleep 0"; while :; do :; done'`, "", 143)
}

// traceroute finds the way, here to this machine.
func TestTraceroute(t *testing.T) {
	says(t, "/", "traceroute -w 60 127.0.0.1", `traceroute to 127.0.0.1 \(127.0.0.1\), 30 hops max\n 1  127.0.0.1(  \d+\.\d{3} ms){3}\n`, 0)
	says(t, "/", "traceroute -w 60 -q 1 -p 40000 ::1", `traceroute to ::1 \(::1\), 30 hops max\n 1  ::1  \d+\.\d{3} ms\n`, 0)
	says(t, "/", "traceroute -q 99 ::1", `traceroute: -m is 1 to 255.*`, 2)
}

// tcpdump shows what comes, by a filter, and writes it.
func TestTcpdump(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("capturing needs CAP_NET_RAW")
	}
	l, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.LocalAddr().String())
	dir := t.TempDir()
	for _, c := range []struct{ flags, want string }{
		{"", `\d\d:\d\d:\d\d\.\d{6} lo    Out IP 127.0.0.1.` + port + ` > 127.0.0.1.` + port + `: UDP, length 5\n.* In  IP 127.0.0.1.` + port + ` > .*: UDP, length 5\n`},
		{"-w f", ``},
	} {
		cmd := command(t, dir, "sh", "-c", "tcpdump -c 2 -i lo "+c.flags+" udp port "+port)
		var out bytes.Buffer
		cmd.Stdout = &out
		errs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(errs)
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "listening on lo") {
			t.Fatalf("%q, %v", line, err)
		}
		if _, err := l.WriteTo([]byte("hello"), l.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil || !strings.HasPrefix(string(rest), "2 packets captured\n") || !regexp.MustCompile(`(?s)^`+c.want+`$`).MatchString(out.String()) {
			t.Errorf("tcpdump %s: %v\n%s%s", c.flags, err, rest, out.String())
		}
	}
	says(t, dir, "tcpdump -r f -tA udp | head -n 1", `Out IP 127.0.0.1.`+port+` > 127.0.0.1.`+port+`: UDP, length 5\n`, 0)
	says(t, dir, "tcpdump -i nothing", `tcpdump: interface "nothing": .*`, 1)
	says(t, dir, "tcpdump -d tcp port", `tcpdump: filter "tcp port": .*`, 2)
	says(t, dir, "tcpdump -D", `.*\.lo \[up\|loopback\|running\]\n.*any.*`, 0)
}

// ping asks and counts.
func TestPing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("whether others may ping is the machine's to say")
	}
	says(t, "/", "ping -c 2 -i 0.01 127.0.0.1", `PING 127.0.0.1 .*seq=0 .*seq=1 .*2 packets transmitted, 2 received, 0% packet loss\n.*`, 0)
	says(t, "/", "ping -c 1 -q ::1", `PING ::1 .*1 packets transmitted, 1 received, 0% packet loss\n.*`, 0)
	says(t, "/", "ping nobody.invalid", "ping: .*nobody.invalid.*\n", 2)
}
