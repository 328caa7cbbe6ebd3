# docker build -t pawl .
# docker run --rm -it --user "$(id -u):$(id -g)" -v "$PWD:/work" -e ANTHROPIC_API_KEY pawl run agent.yaml "What is here?"
FROM golang:1.26 AS build
ARG VERSION=devel
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w -X main.version=$VERSION" -o /pawl ./cmd/pawl

FROM alpine:3.22
RUN apk add --no-cache ca-certificates git
COPY --from=build /pawl /usr/local/bin/pawl
WORKDIR /work
ENTRYPOINT ["pawl"]
