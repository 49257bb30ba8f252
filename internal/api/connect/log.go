// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericrest "k8s.io/apiserver/pkg/registry/generic/rest"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/debug/wire"
	"github.com/wherryproject/wherry/internal/streams"
)

// Log serves pods/log.
type Log struct {
	pods  PodGetter
	nodes NodeLocator
}

var (
	_ rest.GetterWithOptions = &Log{}
	_ rest.StorageMetadata   = &Log{}
)

// NewLog makes the storage of pods/log (PL-09).
func NewLog(pods PodGetter, nodes NodeLocator) *Log { return &Log{pods: pods, nodes: nodes} }

// New implements rest.Storage.
func (*Log) New() runtime.Object { return &corev1.Pod{} }

// Destroy implements rest.Storage.
func (*Log) Destroy() {}

// ProducesMIMETypes implements rest.StorageMetadata: logs are text.
func (*Log) ProducesMIMETypes(string) []string { return []string{"text/plain"} }

// ProducesObject implements rest.StorageMetadata.
func (*Log) ProducesObject(string) any { return "" }

// OverrideMetricsVerb counts log requests as connections: they last as long as the client likes.
func (*Log) OverrideMetricsVerb(verb string) string {
	if verb == "GET" {
		return "CONNECT"
	}
	return verb
}

// NewGetOptions implements rest.GetterWithOptions.
func (*Log) NewGetOptions() (runtime.Object, bool, string) { return &corev1.PodLogOptions{}, false, "" }

// Get implements rest.GetterWithOptions. A pod that is on no node yet has an empty log.
func (l *Log) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	opts, ok := options.(*corev1.PodLogOptions)
	if !ok {
		return nil, fmt.Errorf("invalid options object: %T", options)
	}
	if errs := ValidateLogOptions(opts); len(errs) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodLogOptions").GroupKind(), name, errs)
	}
	pod, err := l.pods(ctx, name)
	if err != nil {
		return nil, err
	}
	container, err := chooseContainer(pod, opts.Container)
	if err != nil {
		return nil, err
	}
	if pod.Spec.NodeName == "" {
		return &genericrest.LocationStreamer{}, nil
	}
	location, transport, err := l.nodes(ctx, pod.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	if opts.InsecureSkipTLSVerifyBackend {
		transport = insecure(transport)
	}
	u := *location
	u.Path = fmt.Sprintf("/containerLogs/%s/%s/%s", pod.Namespace, pod.Name, container)
	u.RawQuery = withReader(ctx, logQuery(opts)).Encode()
	return &logStream{node: pod.Spec.NodeName, LocationStreamer: &genericrest.LocationStreamer{
		Location:        &u,
		Transport:       transport,
		ContentType:     "text/plain",
		Flush:           opts.Follow,
		ResponseChecker: genericrest.NewGenericHttpResponseChecker(corev1.Resource("pods/log"), name),
		RedirectChecker: genericrest.PreventRedirects,
	}}, nil
}

// withReader adds who asks to a query.
func withReader(ctx context.Context, q url.Values) url.Values {
	if u, ok := request.UserFrom(ctx); ok {
		q.Set(wire.ParamReader, u.GetName())
	}
	return q
}

// logStream is a LocationStreamer that says which node could not be reached.
type logStream struct {
	*genericrest.LocationStreamer
	node string
}

// InputStream implements rest.ResourceStreamer.
func (s *logStream) InputStream(ctx context.Context, version, accept string) (io.ReadCloser, bool, string, error) {
	stream, flush, mime, err := s.LocationStreamer.InputStream(ctx, version, accept)
	var cannot *url.Error
	if errors.As(err, &cannot) {
		err = Unreachable(s.node, cannot.Err)
	}
	if stream != nil {
		stream = &endApart{ReadCloser: stream}
	}
	return stream, flush, mime, err
}

// endApart says that a log has ended after the last of it, not along with it: the library's WebSockets drop what comes
// with an end, which is all of a short log.
type endApart struct {
	io.ReadCloser
	end error
}

// Read implements io.Reader.
func (e *endApart) Read(p []byte) (n int, err error) {
	if e.end != nil {
		return 0, e.end
	}
	n, err = e.ReadCloser.Read(p)
	if n > 0 && err != nil {
		e.end, err = err, nil
	}
	return n, err
}

// WriteTo implements io.WriterTo: a long log goes in pieces larger than io.Copy's.
func (e *endApart) WriteTo(w io.Writer) (int64, error) {
	to := &counted{Writer: w}
	err := streams.Pass(to, struct{ io.Reader }{e})
	return to.n, err
}

// counted counts what is written.
type counted struct {
	io.Writer
	n int64
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}

// logQuery puts the options as the kubelet reads them.
func logQuery(o *corev1.PodLogOptions) url.Values {
	q := url.Values{}
	for name, set := range map[string]bool{"follow": o.Follow, "previous": o.Previous, "timestamps": o.Timestamps} {
		if set {
			q.Set(name, "true")
		}
	}
	for name, n := range map[string]*int64{"sinceSeconds": o.SinceSeconds, "tailLines": o.TailLines,
		"limitBytes": o.LimitBytes} {
		if n != nil {
			q.Set(name, strconv.FormatInt(*n, 10))
		}
	}
	if o.SinceTime != nil {
		q.Set("sinceTime", o.SinceTime.Format(time.RFC3339))
	}
	if o.Stream != nil && *o.Stream != corev1.LogStreamAll {
		q.Set("stream", *o.Stream)
	}
	return q
}

// ValidateLogOptions checks the options of a log request.
func ValidateLogOptions(o *corev1.PodLogOptions) field.ErrorList {
	var errs field.ErrorList
	if o.TailLines != nil && *o.TailLines < 0 {
		errs = append(errs, field.Invalid(field.NewPath("tailLines"), *o.TailLines,
			"must be greater than or equal to 0"))
	}
	if o.LimitBytes != nil && *o.LimitBytes < 1 {
		errs = append(errs, field.Invalid(field.NewPath("limitBytes"), *o.LimitBytes, "must be greater than 0"))
	}
	switch {
	case o.SinceSeconds != nil && o.SinceTime != nil:
		errs = append(errs, field.Forbidden(field.NewPath(""),
			"at most one of `sinceTime` or `sinceSeconds` may be specified"))
	case o.SinceSeconds != nil && *o.SinceSeconds < 1:
		errs = append(errs, field.Invalid(field.NewPath("sinceSeconds"), *o.SinceSeconds, "must be greater than 0"))
	}
	streams := []string{corev1.LogStreamAll, corev1.LogStreamStdout, corev1.LogStreamStderr}
	switch stream := ptr.Deref(o.Stream, corev1.LogStreamAll); stream {
	case corev1.LogStreamAll:
	case corev1.LogStreamStdout, corev1.LogStreamStderr:
		if o.TailLines != nil {
			errs = append(errs, field.Forbidden(field.NewPath(""),
				"`tailLines` and specific `stream` are mutually exclusive for now"))
		}
	default:
		errs = append(errs, field.NotSupported(field.NewPath("stream"), stream, streams))
	}
	return errs
}

// insecure is the same way without checking who is at its end. It serves one request.
func insecure(transport http.RoundTripper) http.RoundTripper {
	t, ok := transport.(*http.Transport)
	if !ok {
		return transport
	}
	t = t.Clone()
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.InsecureSkipVerify = true
		t.TLSClientConfig.RootCAs = nil
	}
	t.DisableKeepAlives = true // nobody will use this connection again, or close it
	return t
}
