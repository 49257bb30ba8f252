// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// fetch is what wget and curl are asked for.
type fetch struct {
	method, data, user, ca string
	headers                []string
	insecure, follow       bool
	timeout, connect       float64
	unix                   string
	resolve                []string
	family                 string         // "", "4" or "6"
	trace                  *exchangeTrace // may be nil
	compressed             bool
}

// client makes an HTTP client. This image has no certificates of authorities: the machine's own are used if they are
// there, the cluster's when it is named.
func (f *fetch) client() (*http.Client, error) {
	conf := &tls.Config{InsecureSkipVerify: f.insecure} //nolint:gosec // asked for by -k
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, err
		}
		if conf.RootCAs = x509.NewCertPool(); !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificates", f.ca)
		}
	}
	dialer := &net.Dialer{Timeout: seconds(f.connect)}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: conf,
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableCompression: !f.compressed}
	if f.unix != "" || len(f.resolve) > 0 || f.family != "" {
		transport.DialContext = f.dial(dialer)
	}
	c := &http.Client{Transport: transport, Timeout: seconds(f.timeout)}
	if f.trace != nil {
		c.Transport = traced{transport, f.trace}
	}
	if !f.follow {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c, nil
}

func (f *fetch) do(address string) (*http.Response, error) {
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if name, ok := strings.CutPrefix(f.data, "@"); ok {
		file := os.Stdin
		if name != "-" {
			if file, err = os.Open(name); err != nil {
				return nil, err
			}
		}
		body = file
	} else if f.data != "" {
		body = strings.NewReader(f.data)
	}
	req, err := http.NewRequestWithContext(f.trace.context(context.Background()), f.method, withScheme(address), body)
	if err != nil {
		return nil, applet.Usage("%v", err)
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return nil, applet.Usage("only http and https are known, not %q", req.URL.Scheme)
	}
	req.Header.Set("User-Agent", "wherry-toolbox")
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range f.headers {
		name, v, ok := strings.Cut(h, ":")
		if !ok {
			return nil, applet.Usage("header %q is not as Name: value", h)
		}
		if strings.EqualFold(name, "Host") {
			req.Host = strings.TrimSpace(v)
		}
		req.Header.Set(name, strings.TrimSpace(v))
	}
	if name, password, ok := strings.Cut(f.user, ":"); ok {
		req.SetBasicAuth(name, password)
	}
	resp, err := client.Do(req)
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		err = fmt.Errorf("%w (this image has no certificates: name them, as with --cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt, or go without checking)", err)
	}
	return resp, err
}

func wget(c *applet.Call) error {
	f := &fetch{method: "GET", follow: true}
	out := c.String("O,output-document", "FILE", "", "where to write; - is standard output")
	quiet := c.Bool("q,quiet", "no messages")
	show := c.Bool("S,server-response", "show the answer's headers")
	spider := c.Bool(",spider", "only ask whether it is there")
	dir := c.String("P,directory-prefix", "FOLDER", ".", "folder to write to")
	headers := c.Strings(",header", "HEADER", "send this too, as 'Name: value'")
	post := c.String(",post-data", "TEXT", "", "send this with POST")
	timeout := c.Float("T,timeout", "SECONDS", 900, "how long to wait")
	insecure := c.Bool(",no-check-certificate", "do not check who answers")
	c.Do("k", "as --no-check-certificate", func() { *insecure = true })
	ca := c.String(",ca-certificate", "FILE", "", "certificates of authorities")
	if err := c.Parse(1, -1); err != nil {
		return err
	}
	f.headers, f.data, f.timeout, f.connect, f.insecure, f.ca = *headers, *post, *timeout, min(*timeout, 30), *insecure,
		*ca
	if *post != "" {
		f.method = "POST"
	}
	if *spider {
		f.method = "HEAD"
	}
	for _, address := range c.Args {
		resp, err := f.do(address)
		if err != nil {
			return err
		}
		if *show {
			fmt.Fprintf(c.Err, "  %s %s\n", resp.Proto, resp.Status)
			_ = resp.Header.Write(indent{c.Err})
		}
		if resp.StatusCode >= 400 {
			resp.Body.Close()
			return applet.Fail(8, "%s: the server answered %s", address, resp.Status)
		}
		if *spider {
			continue
		}
		name := *out
		if name == "" {
			if name = nameIn(address); name == "" {
				name = "index.html"
			}
			name = filepath.Join(*dir, name)
		}
		n, err := save(c, name, resp.Body, false)
		if err != nil {
			return err
		}
		if !*quiet && name != "-" {
			fmt.Fprintf(c.Err, "%s: %s saved\n", name, applet.Human(n))
		}
	}
	return nil
}

// nameIn is the last part of an address, "" if it has none that a file could be called by. It is that of the address
// which was asked for, as wget and curl take it: a server that redirects does not choose what is written where.
func nameIn(address string) string {
	u, err := url.Parse(withScheme(address))
	if err != nil {
		return ""
	}
	if name := path.Base(u.Path); name != "/" && name != "." && name != ".." {
		return name
	}
	return ""
}

func withScheme(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + address
}

// indent sets headers apart.
type indent struct{ w io.Writer }

func (i indent) Write(p []byte) (int, error) {
	_, err := i.w.Write(append([]byte("  "), p...))
	return len(p), err
}

func save(c *applet.Call, name string, body io.ReadCloser, stream bool) (n int64, err error) {
	defer body.Close()
	var w io.Writer = c.Out
	if name != "-" {
		f, err := os.Create(name)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		w = f
	} else if stream { // what comes slowly is to be seen at once
		_ = c.Out.Flush()
		w = os.Stdout
	}
	return io.Copy(w, body)
}

// httpd serves files.
func httpd(c *applet.Call) error {
	addr := c.String("p,port", "[ADDRESS:]PORT", "8080", "where to listen")
	c.Bool("f", "does nothing: it stays in the foreground")
	dir := c.String("h,home", "FOLDER", "", "as the argument")
	if err := c.Parse(0, 1); err != nil {
		return err
	}
	if len(c.Args) == 1 {
		*dir = c.Args[0]
	}
	if *dir == "" {
		*dir = "."
	}
	root, err := os.OpenRoot(*dir)
	if err != nil {
		return err
	}
	at := *addr
	if !strings.Contains(at, ":") {
		at = ":" + at
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Err, "serving %s at http://%s/\n", *dir, l.Addr())
	files := http.FileServerFS(root.FS())
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		fmt.Fprintf(c.Err, "%s %s %s\n", r.RemoteAddr, r.Method, r.URL.Path)
		files.ServeHTTP(w, r)
	})}
	return server.Serve(l)
}
