// SPDX-License-Identifier: Apache-2.0

package network

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

func curl(c *applet.Call) error {
	f := &fetch{}
	c.Do("s,silent", "no messages but failures' with -S", func() {})
	c.Do("S,show-error", "does nothing", func() {})
	c.Do("N,no-buffer", "does nothing", func() {})
	c.Do("g,globoff", "does nothing", func() {})
	method := c.String("X,request", "METHOD", "", "method")
	head, with := c.Bool("I,head", "headers only"), c.Bool("i,include", "headers too")
	verbose := c.Bool("v,verbose", "say what goes on: connection, handshake, headers")
	headers := c.Strings("H,header", "HEADER", "send this too, as 'Name: value'")
	data := c.Strings("d,data", "TEXT", "send this; @FILE is a file's content")
	binary := c.Strings(",data-binary", "TEXT", "as -d")
	raw := c.Strings(",data-raw", "TEXT", "as -d, without @")
	upload := c.String("T,upload-file", "FILE", "", "send a file by PUT")
	out := c.String("o,output", "FILE", "-", "where to write")
	remote := c.Bool("O,remote-name", "write to a file of that name")
	fail := c.Bool("f,fail", "an answer of 400 or more is a failure, exit code 22")
	follow, insecure := c.Bool("L,location", "follow redirects"), c.Bool("k,insecure", "do not check who answers")
	ca := c.String(",cacert", "FILE", "", "certificates of authorities")
	user := c.String("u,user", "NAME:PASSWORD", "", "name and password")
	timeout, connect := c.Float("m,max-time", "SECONDS", 0, "how long it may take"),
		c.Float(",connect-timeout", "SECONDS", 60, "how long connecting may take")
	socket := c.String(",unix-socket", "PATH", "", "connect to a unix socket")
	resolve := c.Strings(",resolve", "HOST:PORT:ADDRESS", "take this address for a name")
	format := c.String("w,write-out", "FORMAT", "",
		"print this at the end: %{http_code}, %{time_connect}, %{remote_ip} and the like; %{json} is all of them")
	agent := c.String("A,user-agent", "TEXT", "", "what to call oneself")
	c.Do("4,ipv4", "IPv4 only", func() { f.family = "4" })
	c.Do("6,ipv6", "IPv6 only", func() { f.family = "6" })
	c.Do(",compressed", "ask for a compressed answer, and decompress it", func() { f.compressed = true })
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	if name, ok := strings.CutPrefix(*format, "@"); ok {
		if name == "-" {
			name = "/dev/stdin"
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return applet.Fail(26, "%w", err)
		}
		*format = string(text)
	}
	f.headers, f.follow, f.insecure, f.ca, f.user, f.timeout, f.connect, f.unix, f.resolve = *headers, *follow,
		*insecure, *ca, *user, *timeout, *connect, *socket, *resolve
	if *agent != "" {
		f.headers = append(f.headers, "User-Agent: "+*agent)
	}
	f.data = strings.Join(slices.Concat(*data, *binary, *raw), "&")
	switch {
	case *upload != "":
		f.data, f.method = "@"+*upload, "PUT"
	case f.data != "":
		f.method = "POST"
	case *head:
		f.method = "HEAD"
	}
	if *method != "" {
		f.method = *method
	}
	for _, url := range c.Args {
		if err := curlOne(c, f, url, curlOutput{*out, *format, *remote, *head || *with, *head, *verbose,
			*fail}); err != nil {
			return err
		}
	}
	return nil
}

// curlOutput says what of an answer goes where.
type curlOutput struct {
	file, format                         string
	remote, headers, only, verbose, fail bool
}

func curlOne(c *applet.Call, f *fetch, url string, o curlOutput) error {
	f.trace = newTrace(c.Err, o.verbose)
	resp, err := f.do(url)
	if err != nil {
		c.Printf("%s", f.trace.written(o.format, nil, url, 0))
		return applet.Fail(curlCode(err), "%w", err)
	}
	if o.fail && resp.StatusCode >= 400 {
		resp.Body.Close()
		c.Printf("%s", f.trace.written(o.format, resp, url, 0))
		return applet.Fail(22, "the server answered %s", resp.Status)
	}
	if o.headers {
		c.Printf("%s %s\r\n", resp.Proto, resp.Status)
		_ = resp.Header.Write(c.Out)
		c.Printf("\r\n")
	}
	if o.remote {
		if o.file = nameIn(url); o.file == "" {
			resp.Body.Close()
			return applet.Fail(23, "%s has no file name: give one with -o", url)
		}
	}
	n, err := save(c, o.file, resp.Body, true)
	c.Printf("%s", f.trace.written(o.format, resp, url, n))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return applet.Fail(28, "%w", err)
	}
	return err
}

// curlCode is the exit code that curl has for a failure.
func curlCode(err error) int {
	var dns *net.DNSError
	var op *net.OpError
	var refused *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &dns):
		return 6
	case errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &op) && op.Timeout():
		return 28
	case errors.As(err, &op) && (errors.Is(err, unix.ECONNREFUSED) || op.Op == "dial"):
		return 7
	case errors.As(err, &refused):
		return 60
	case errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, new(x509.UnknownAuthorityError)):
		return 35
	}
	if e, ok := err.(interface{ Timeout() bool }); ok && e.Timeout() {
		return 28
	}
	return 1
}
