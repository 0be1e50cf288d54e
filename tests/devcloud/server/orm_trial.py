"""Relationships by all ways that orm_tuning.py changes: ``python -m tests.devcloud.server.orm_trial plain|tuned``.

Prints as JSON what is found after each step, and how many queries that took; both ways have to find the same.
"""

import json
import sys

from sqlalchemy import Column, ForeignKey, Integer, Table, create_engine, event
from sqlalchemy.orm import DeclarativeBase, Session, relationship

from tests.devcloud.server import orm_tuning


class Base(DeclarativeBase):
    pass


links = Table("links", Base.metadata, Column("port", ForeignKey("ports.id")), Column("rule", ForeignKey("rules.id")))


class Port(Base):
    __tablename__ = "ports"
    id = Column(Integer, primary_key=True)
    rules = relationship("Rule", lazy="subquery")
    hint = relationship("Hint", lazy="subquery", uselist=False)
    linked = relationship("Rule", secondary=links, lazy="selectin", viewonly=True)


class Rule(Base):
    __tablename__ = "rules"
    id = Column(Integer, primary_key=True)
    port_id = Column(ForeignKey("ports.id"))
    port = relationship(Port, lazy="selectin", viewonly=True)


class Hint(Base):
    __tablename__ = "hints"
    id = Column(Integer, primary_key=True)
    port_id = Column(ForeignKey("ports.id"))


def numbers(port):
    return [sorted(each.id for each in port.rules), port.hint and port.hint.id, [each.id for each in port.linked]]


def steps(session):
    """Yield what is found: of nothing, of what waits to be written, of what is there, and after it is gone."""
    yield session.query(Rule).all()
    session.add_all([Port(id=1), Port(id=2)])
    session.commit()
    yield [numbers(port) for port in session.query(Port).order_by(Port.id)]
    session.expire_all()
    session.add_all([Rule(id=5, port_id=1), Hint(id=6, port_id=2)])
    yield [numbers(port) for port in session.query(Port).order_by(Port.id)]
    session.rollback()
    yield [numbers(port) for port in session.query(Port).order_by(Port.id)]
    session.add_all([Rule(id=5, port_id=1), Hint(id=6, port_id=2)])
    session.commit()
    session.execute(links.insert().values(port=2, rule=5))
    session.commit()
    yield [numbers(port) for port in session.query(Port).order_by(Port.id)]
    yield [rule.port.id for rule in session.query(Rule)]
    first = session.get(Port, 1)
    first.rules.clear()
    first.rules.append(Rule(id=7))
    yield numbers(session.query(Port).populate_existing().filter_by(id=1).one())
    session.query(Rule).delete()
    session.query(Hint).delete()
    session.commit()
    session.refresh(first)
    yield [numbers(port) for port in session.query(Port).order_by(Port.id)]


def main():
    if sys.argv[1] == "tuned":
        orm_tuning.tune()
    engine, statements = create_engine("sqlite://"), []
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        found = list(steps(session))
    print(json.dumps({"found": found, "queries": sum(each.startswith("SELECT") for each in statements)}))


if __name__ == "__main__":
    main()
