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

// curlFlags are curl's flags that are not a part of the request as they stand.
type curlFlags struct {
	method, upload, out, ca, user, socket, format, agent *string
	head, with, verbose, remote, fail, follow, insecure  *bool
	headers, data, binary, raw, resolve                  *[]string
	timeout, connect                                     *float64
}

func newCurlFlags(c *applet.Call, f *fetch) (o curlFlags) {
	c.Do("s,silent", "no messages but failures' with -S", func() {})
	c.Do("S,show-error", "does nothing", func() {})
	c.Do("N,no-buffer", "does nothing", func() {})
	c.Do("g,globoff", "does nothing", func() {})
	o.method = c.String("X,request", "METHOD", "", "method")
	o.head, o.with = c.Bool("I,head", "headers only"), c.Bool("i,include", "headers too")
	o.verbose = c.Bool("v,verbose", "say what goes on: connection, handshake, headers")
	o.headers = c.Strings("H,header", "HEADER", "send this too, as 'Name: value'")
	o.data = c.Strings("d,data", "TEXT", "send this; @FILE is a file's content")
	o.binary = c.Strings(",data-binary", "TEXT", "as -d")
	o.raw = c.Strings(",data-raw", "TEXT", "as -d, without @")
	o.upload = c.String("T,upload-file", "FILE", "", "send a file by PUT")
	o.out = c.String("o,output", "FILE", "-", "where to write")
	o.remote = c.Bool("O,remote-name", "write to a file of that name")
	o.fail = c.Bool("f,fail", "an answer of 400 or more is a failure, exit code 22")
	o.follow = c.Bool("L,location", "follow redirects")
	o.insecure = c.Bool("k,insecure", "do not check who answers")
	o.ca = c.String(",cacert", "FILE", "", "certificates of authorities")
	o.user = c.String("u,user", "NAME:PASSWORD", "", "name and password")
	o.timeout = c.Float("m,max-time", "SECONDS", 0, "how long it may take")
	o.connect = c.Float(",connect-timeout", "SECONDS", 60, "how long connecting may take")
	o.socket = c.String(",unix-socket", "PATH", "", "connect to a unix socket")
	o.resolve = c.Strings(",resolve", "HOST:PORT:ADDRESS", "take this address for a name")
	o.format = c.String("w,write-out", "FORMAT", "",
		"print this at the end: %{http_code}, %{time_connect}, %{remote_ip} and the like; %{json} is all of them")
	o.agent = c.String("A,user-agent", "TEXT", "", "what to call oneself")
	c.Do("4,ipv4", "IPv4 only", func() { f.family = "4" })
	c.Do("6,ipv6", "IPv6 only", func() { f.family = "6" })
	c.Do(",compressed", "ask for a compressed answer, and decompress it", func() { f.compressed = true })
	return o
}

// request puts into a request what the flags say of it.
func (o curlFlags) request(f *fetch) {
	f.headers, f.follow, f.insecure, f.ca, f.user, f.timeout, f.connect, f.unix, f.resolve = *o.headers, *o.follow,
		*o.insecure, *o.ca, *o.user, *o.timeout, *o.connect, *o.socket, *o.resolve
	if *o.agent != "" {
		f.headers = append(f.headers, "User-Agent: "+*o.agent)
	}
	f.data = strings.Join(slices.Concat(*o.data, *o.binary, *o.raw), "&")
	switch {
	case *o.upload != "":
		f.data, f.method = "@"+*o.upload, "PUT"
	case f.data != "":
		f.method = "POST"
	case *o.head:
		f.method = "HEAD"
	}
	if *o.method != "" {
		f.method = *o.method
	}
}

// output says what of an answer goes where. -w may name a file that has the format.
func (o curlFlags) output() (curlOutput, error) {
	out := curlOutput{*o.out, *o.format, *o.remote, *o.head || *o.with, *o.verbose, *o.fail}
	name, ok := strings.CutPrefix(*o.format, "@")
	if !ok {
		return out, nil
	}
	if name == "-" {
		name = "/dev/stdin"
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return out, applet.Fail(26, "%w", err)
	}
	out.format = string(text)
	return out, nil
}

func curl(c *applet.Call) error {
	f := &fetch{}
	flags := newCurlFlags(c, f)
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	out, err := flags.output()
	if err != nil {
		return err
	}
	flags.request(f)
	for _, url := range c.Args {
		if err := curlOne(c, f, url, out); err != nil {
			return err
		}
	}
	return nil
}

// curlOutput says what of an answer goes where.
type curlOutput struct {
	file, format                   string
	remote, headers, verbose, fail bool
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
