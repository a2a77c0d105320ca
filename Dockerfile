# The dashboard on the CPU. Build: docker build -t headviz .   Also serves as a Space of the Docker kind.
FROM python:3.12-slim AS build
WORKDIR /build
RUN pip install --no-cache-dir build
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE app.py ./
COPY .streamlit .streamlit
COPY pages pages
COPY src src
RUN python -m build --wheel --outdir /wheels .

FROM python:3.12-slim
RUN useradd --create-home --uid 1000 headviz
# the CPU build of torch: a tenth of the size of the one with GPU libraries
RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -r /wheels
USER headviz
WORKDIR /home/headviz
RUN mkdir cache
ENV HEADVIZ_HOME=/home/headviz/cache \
    HEADVIZ_ROOTS=/models:/data \
    PYTHONUNBUFFERED=1
VOLUME /home/headviz/cache
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD python -c "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"
CMD ["headviz", "demo", "--headless", "--address", "0.0.0.0"]
